import { flushCompileCache } from 'node:module'
import { setImmediate as nextMacrotask } from 'node:timers/promises'
import { LucidStore } from '../../src/stores/lucid/lucid_store.ts'
import { type CrashPoint, crashingStore } from '../../src/testing/crash_store.ts'
import { connectTo } from '../stores/sqlite_database.ts'
import { Effects } from './effects.ts'
import type { Scenario } from './scenario.ts'
import { type ScenarioName, SCENARIOS } from './scenarios.ts'
import { engineOn, workerOf } from './sqlite_process.ts'

/** What the process is asked for, over and over until it is killed: to take a scenario to its end. */
export interface CrashOrder {
  scenario: ScenarioName
  database: string
  effects: string
  /** Where it kills itself; null: nowhere. */
  point: CrashPoint | null
}

/** What it says once the scenario has ended. */
export interface CrashReport {
  writes: number
  stranded: unknown[]
}

async function obey({ scenario, database, effects, point }: CrashOrder): Promise<CrashReport> {
  const db = connectTo(database)
  const crashing = crashingStore(new LucidStore({ db }), { point })
  const engine = engineOn(crashing.store)
  const world = new Effects(effects)
  const { register, drive }: Scenario = SCENARIOS[scenario]
  register(engine, (step) => world.add(step))
  const worker = await workerOf(engine, { name: 'crashing' })
  await drive(engine)
  // A kill after the last write comes with the next macrotask.
  await nextMacrotask()
  const stranded = await engine.findStranded()
  await worker.stop()
  await engine.stop()
  await db.manager.closeAll()
  return { writes: crashing.writes, stranded }
}

process.on('message', (order: CrashOrder) => {
  void obey(order).then((report) => process.send?.(report))
})
flushCompileCache()

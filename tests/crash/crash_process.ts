import { flushCompileCache } from 'node:module'
import { setImmediate as nextMacrotask } from 'node:timers/promises'
import { type CrashPoint, crashingStore } from '../../src/testing/crash_store.ts'
import { connect, type DatabaseAddress } from '../support/process_database.ts'
import { processApp } from '../support/process_app.ts'
import { Effects } from '../support/effects.ts'
import type { Scenario } from './scenario.ts'
import { type ScenarioName, SCENARIOS } from './scenarios.ts'

/** What the process is asked for, over and over until it is killed: to take a scenario to its end. */
export interface CrashOrder {
  scenario: ScenarioName
  database: DatabaseAddress
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
  const { db, store } = connect(database)
  const crashing = crashingStore(store, { point })
  const { options, register, drive }: Scenario = SCENARIOS[scenario]
  const app = processApp(crashing.store, options)
  const { engine } = app
  const world = new Effects(effects)
  register(engine, (step) => world.add(step))
  await app.work({ name: 'crashing' })
  await drive(engine)
  // A kill after the last write comes with the next macrotask.
  await nextMacrotask()
  const stranded = await engine.findStranded()
  await app.close()
  await db.manager.closeAll()
  return { writes: crashing.writes, stranded }
}

process.on('message', (order: CrashOrder) => {
  void obey(order).then((report) => process.send?.(report))
})
flushCompileCache()

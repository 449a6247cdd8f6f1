import { flushCompileCache } from 'node:module'
import { LucidStore } from '../../src/stores/lucid/lucid_store.ts'
import { Effects } from '../crash/effects.ts'
import { engineOn, workerOf } from '../crash/sqlite_process.ts'
import { connectTo } from '../stores/sqlite_database.ts'
import { registerRacing } from './racing_runs.ts'

/** A worker on a SQLite file. It says `ready`, and stops in order when it is told anything. */
const [, , file = '', effectsFile = '', leaseMs = ''] = process.argv
const db = connectTo(file)
const engine = engineOn(new LucidStore({ db }), { leaseMs: Number(leaseMs) })
const effects = new Effects(effectsFile, { sync: false })
registerRacing(engine, (step) => effects.add(step))
const worker = await workerOf(engine)
flushCompileCache()
process.once('message', () => void stop())
process.send?.('ready')

async function stop() {
  await worker.stop()
  await engine.stop()
  await db.manager.closeAll()
  process.disconnect()
}

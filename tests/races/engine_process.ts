import { flushCompileCache } from 'node:module'
import { LucidStore } from '../../src/stores/lucid/lucid_store.ts'
import { Effects } from '../support/effects.ts'
import { processApp } from '../support/process_app.ts'
import { connectTo } from '../stores/sqlite_database.ts'
import { registerRacing } from './racing_runs.ts'

/** A worker on a SQLite file. It says `ready`, and stops in order when it is told anything. */
const [, , file = '', effectsFile = '', leaseMs = ''] = process.argv
const db = connectTo(file)
const app = processApp(new LucidStore({ db }), { leaseMs: Number(leaseMs) })
const effects = new Effects(effectsFile, { sync: false })
registerRacing(app.engine, (step) => effects.add(step))
await app.work()
flushCompileCache()
process.once('message', () => void stop())
process.send?.('ready')

async function stop() {
  await app.close()
  await db.manager.closeAll()
  process.disconnect()
}

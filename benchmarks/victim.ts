import { DurableApp } from '../tests/support/durable_app.ts'
import { connectTo } from '../tests/stores/sqlite_database.ts'
import { LucidStore } from '../src/stores/lucid/lucid_store.ts'
import { WORKER_NAME } from './killed_process.ts'
import { registerTenSteps } from './ten_steps.ts'

/** Brings so many runs on a database to their middle step, says so, and waits to be killed. */
const [file = '', count = ''] = process.argv.slice(2)
const runs = Number(count)
const app = new DurableApp({ store: new LucidStore({ db: connectTo(file) }) })
let standing = 0
const workflow = registerTenSteps(app.engine, () => {
  if (++standing === runs) process.send?.('standing')
  return new Promise(() => {})
})
await app.work({ name: WORKER_NAME, concurrency: runs })
await Promise.all(Array.from({ length: runs }, () => app.engine.start(workflow)))

import { flushCompileCache } from 'node:module'
import type { GivenOptions } from '../../src/options.ts'
import { isUnderDevelopmentServer } from '../../src/worker/development_server.ts'
import { processApp } from '../engine/process_app.ts'
import { registerPoison } from './poison_workflows.ts'
import { connect, type DatabaseAddress } from './process_database.ts'

/** How the process is set up: its only argument, as JSON. */
export interface PoisonOrder {
  address: DatabaseAddress
  name: string
  options: GivenOptions
  watchdog: boolean
  concurrency: number
  /** What the process that starts it sets, as a development server does. */
  env: Record<string, string>
}

const order = JSON.parse(process.argv[2] ?? '{}') as PoisonOrder
const { address, name, watchdog, concurrency } = order
Object.assign(process.env, order.env)
const { db, store } = connect(address)
const app = processApp(store, order.options)
registerPoison(app.engine)
const isCounted = !isUnderDevelopmentServer()
flushCompileCache()
process.once('SIGTERM', () => void stop())
await app.work({ name, watchdog, concurrency, isCounted })
process.send?.('ready')

async function stop() {
  await app.close()
  await db.manager.closeAll()
  process.disconnect()
}

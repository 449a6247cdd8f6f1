import { flushCompileCache } from 'node:module'
import type { GivenOptions } from '../../src/options.ts'
import { isUnderDevelopmentServer } from '../../src/worker/development_server.ts'
import { processApp } from '../support/process_app.ts'
import { registerPoison } from './poison_workflows.ts'
import { connect, type DatabaseAddress } from '../support/process_database.ts'

/** How the process is set up: the one thing it is told. */
export interface PoisonOrder {
  address: DatabaseAddress
  name: string
  options: GivenOptions
  watchdog: boolean
  concurrency: number
  /** What the process that starts it sets, as a development server does. */
  env: Record<string, string>
}

/** Told once, so that a process may load its code before it is needed. */
process.once('message', (order: PoisonOrder) => void obey(order))
flushCompileCache()

async function obey({ address, name, watchdog, concurrency, env, options }: PoisonOrder) {
  Object.assign(process.env, env)
  const { db, store } = connect(address)
  const app = processApp(store, options)
  registerPoison(app.engine)
  const isCounted = !isUnderDevelopmentServer()
  process.once('SIGTERM', () => void stop())
  await app.work({ name, watchdog, concurrency, isCounted })
  process.send?.('ready')

  async function stop() {
    await app.close()
    await db.manager.closeAll()
    process.disconnect()
  }
}

import { flushCompileCache } from 'node:module'
import { LucidStore } from '../../src/stores/lucid/lucid_store.ts'
import { Effects } from '../support/effects.ts'
import { processApp } from '../support/process_app.ts'
import { connectTo, type PostgresServer } from '../stores/postgres_server.ts'
import { registerMixed } from './mixed_runs.ts'

/** What the process is: its only argument, as JSON. */
export interface FleetOrder {
  server: PostgresServer
  database: string
  effects: string
  name: string
  leaseMs: number
}

/** A worker on PostgreSQL. It says `ready`, and stops in order when it is told anything. */
const order = JSON.parse(process.argv[2] ?? '{}') as FleetOrder
const { leaseMs, name } = order
const db = connectTo(order.database, order.server)
const options = { leaseMs, hangMs: 600_000, pollMs: 100, idlePollMs: 500 }
const app = processApp(new LucidStore({ db }), options)
const effects = new Effects(order.effects, { sync: false })
registerMixed(app.engine, (step) => effects.add(step))
await app.work({ name, concurrency: 30 })
flushCompileCache()
process.once('message', () => void stop())
process.send?.('ready')

async function stop() {
  await app.close()
  await db.manager.closeAll()
  process.disconnect()
}

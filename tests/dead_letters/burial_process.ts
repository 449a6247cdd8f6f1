import { flushCompileCache } from 'node:module'
import { setImmediate as nextMacrotask } from 'node:timers/promises'
import { type CrashPoint, crashingStore } from '../../src/testing/crash_store.ts'
import { processApp } from '../support/process_app.ts'
import { registerPoison } from './poison_workflows.ts'
import { connect, type DatabaseAddress } from '../support/process_database.ts'
import { CAP } from '../support/stage.ts'

/** The run that the process is to find lost once too often, and where it kills itself: its only argument, as JSON. */
export interface BurialOrder {
  address: DatabaseAddress
  runId: string
  /** Null: nowhere. */
  point: CrashPoint | null
}

/** What it says once the handler run has ended. */
export interface BurialReport {
  writes: number
}

const order = JSON.parse(process.argv[2] ?? '{}') as BurialOrder
const { db, store } = connect(order.address)
const crashing = crashingStore(store, { point: order.point })
const options = { maxRecoveryAttempts: CAP, pollMs: 20, idlePollMs: 50 }
const app = processApp(crashing.store, options)
const { engine } = app
registerPoison(engine)
flushCompileCache()
await app.work({ name: 'gravedigger' })
await engine.waitForRun(order.runId)
await engine.waitForRun(`dlq:${order.runId}`)
// A kill after the last write comes with the next macrotask.
await nextMacrotask()
const report: BurialReport = { writes: crashing.writes }
process.send?.(report)
await app.close()
await db.manager.closeAll()
process.disconnect()

import { flushCompileCache } from 'node:module'
import { setImmediate as nextMacrotask } from 'node:timers/promises'
import type { ResultReceipt, StepMessage, Transport } from '../../src/contracts/transport.ts'
import type { StepResult } from '../../src/core/dispatch.ts'
import { internalsOf } from '../../src/engine/engine.ts'
import type { GivenOptions } from '../../src/options.ts'
import { type CrashPoint, crashingStore } from '../../src/testing/crash_store.ts'
import { connect, type DatabaseAddress } from '../support/process_database.ts'
import { DurableApp } from '../support/durable_app.ts'
import { registerCoordinated } from './coordinated_workflows.ts'

/** How the process is set up: its only argument, as JSON. */
export interface CoordinatorOrder {
  address: DatabaseAddress
  name: string
  options: GivenOptions
  /** Whether the local step of `beside` never ends here. */
  hangs: boolean
  /** Where it kills itself; null = nowhere. */
  point: CrashPoint | null
}

/** What it says to the test. */
export type CoordinatorReport =
  /** It listens to what comes from workers. */
  | { type: 'listening' }
  /** It claims runs. */
  | { type: 'working' }
  /** The local step of `beside` has begun. */
  | { type: 'local' }
  | { type: 'sent'; messages: readonly StepMessage[] }
  /** Null: it could not be stored. */
  | { type: 'receipt'; id: number; receipt: ResultReceipt | null }
  /** How many writes it has made. */
  | { type: 'writes'; count: number }

/** What it is told. */
export type CoordinatorNews =
  | { type: 'result'; id: number; result: StepResult }
  /** It is to say how many writes it has made, once none is under way. */
  | { type: 'count' }

/** Over the channel between this process and the one that started it. */
const transport: Transport = {
  async open(listener) {
    process.on('message', (news: CoordinatorNews) => {
      if (news.type !== 'result') return
      const { id, result } = news
      void listener
        .result(result)
        .catch(() => null)
        .then((receipt) => report({ type: 'receipt', id, receipt }))
    })
    await report({ type: 'listening' })
  },
  send: (messages) => report({ type: 'sent', messages }),
  async close() {},
}

/** Resolves once it is on its way: it arrives though this process dies. */
function report(message: CoordinatorReport): Promise<void> {
  return new Promise((resolve, reject) => {
    process.send?.(message, undefined, undefined, (error) => (error ? reject(error) : resolve()))
  })
}

const order = JSON.parse(process.argv[2] ?? '{}') as CoordinatorOrder
const { store } = connect(order.address)
const crashing = crashingStore(store, { point: order.point })
const app = new DurableApp({ store: crashing.store, options: order.options, transport })
registerCoordinated(app.engine, {
  hangs: order.hangs,
  onLocal: () => void report({ type: 'local' }),
})
process.on('message', (news: CoordinatorNews) => {
  if (news.type === 'count') void count()
})
flushCompileCache()
await app.work({ name: order.name })
await report({ type: 'working' })

async function count(): Promise<void> {
  await internalsOf(app.engine).commits.idle()
  // A kill after the last write comes with the next macrotask.
  await nextMacrotask()
  await report({ type: 'writes', count: crashing.writes })
}

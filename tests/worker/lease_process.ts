import { existsSync } from 'node:fs'
import { flushCompileCache } from 'node:module'
import { Effects } from '../support/effects.ts'
import { connect, type DatabaseAddress } from '../support/process_database.ts'
import { processApp } from '../support/process_app.ts'

/** How the process is set up: its only argument, as JSON. */
export interface LeaseOrder {
  address: DatabaseAddress
  effects: string
  name: string
  options: { leaseMs: number; hangMs: number }
  watchdog: boolean
  /** Its event loop does not turn inside of the second step until this file exists; null: it never stands still. */
  blockUntil: string | null
  /** Whether its second steps wait to be told `go`. */
  waits: boolean
}

const order = JSON.parse(process.argv[2] ?? '{}') as LeaseOrder
const { db, store } = connect(order.address)
const options = { ...order.options, pollMs: 50, idlePollMs: 100 }
const app = processApp(store, options)
const effects = new Effects(order.effects)
const told = Promise.withResolvers<void>()
const sleeper = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))

app.engine.register('three', '1', async (ctx) => {
  await ctx.localStep('first', (step) => effects.add(step))
  await ctx.localStep('second', async (step) => {
    effects.add(step)
    if (order.waits) await told.promise
    const { blockUntil } = order
    while (blockUntil !== null && !existsSync(blockUntil)) Atomics.wait(sleeper, 0, 0, 20)
  })
  await ctx.localStep('third', (step) => effects.add(step))
  return process.pid
})
await app.work({ name: order.name, watchdog: order.watchdog })
flushCompileCache()
process.on('message', (what) => {
  if (what === 'go') told.resolve()
  if (what === 'stop') void stop()
})
process.send?.('ready')

async function stop() {
  await app.close()
  await db.manager.closeAll()
  process.disconnect()
}

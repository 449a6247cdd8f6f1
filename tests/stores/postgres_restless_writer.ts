import { once } from 'node:events'
import { flushCompileCache } from 'node:module'
import { LucidStore } from '../../src/stores/lucid/lucid_store.ts'
import type { Answer, Write } from '../../src/core/change_set.ts'
import { COMPLETE, newRun, newWorker, record, turn } from '../../src/testing/conformance/writes.ts'
import { settled } from './postgres_gate.ts'
import { connectTo, SERVER } from './postgres_server.ts'

/**
 * Writes runs of three steps, whatever becomes of the server, until it is told to stop; then says which of them it was
 * told are completed. What is rejected is sent again, as the engine does with what a turn writes.
 */
const [, , database = '', name = '', port = ''] = process.argv
const server = {
  ...SERVER,
  host: '127.0.0.1',
  port: Number(port),
  user: 'postgres',
  password: undefined,
}
const db = connectTo(database, server)
const store = new LucidStore({ db, busyLimitMs: 500 })
await store.open()
await store.registerWorker(newWorker(name))
let isStopped = false
flushCompileCache()
process.on('message', (what) => {
  if (what === 'stop') isStopped = true
})
process.send?.('ready')
await once(process, 'message')

async function persist(writes: readonly Write[]): Promise<Answer[]> {
  for (;;) {
    try {
      const { answers } = await store.commit(writes)
      return await Promise.all(answers.map(settled))
    } catch {
      continue
    }
  }
}

const completed: string[] = []
for (let round = 0; !isStopped; round++) {
  const ids = [0, 1, 2].map((index) => `${name} ${round} ${index}`)
  const started = await persist(
    ids.map((id) => ({ type: 'start', run: newRun(id), leaseTo: name }))
  )
  const runs = ids.filter((_, index) => started[index]?.type === 'started')
  for (const seq of [0, 1, 2]) {
    const end = seq === 2 ? { end: COMPLETE } : {}
    const answers = await persist(
      runs.map((id) => turn({ id, token: 1 }, { records: [record(seq)], ...end }))
    )
    for (const [index, { type }] of answers.entries()) {
      if (type !== 'committed') throw new Error(`The write of ${runs[index]} is ${type}`)
      if (seq === 2) completed.push(runs[index] ?? '')
    }
  }
  if (round === 5) process.send?.('writing')
}
process.send?.(completed)
await store.close()
await db.manager.closeAll()
process.disconnect()

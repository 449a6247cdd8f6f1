import { once } from 'node:events'
import { flushCompileCache } from 'node:module'
import type { RunRow } from '../../src/core/run.ts'
import { LucidStore } from '../../src/stores/lucid/lucid_store.ts'
import {
  CLAIM_KEY,
  claimKeyOf,
  COMPLETE,
  newRun,
  newWorker,
  parentLink,
  record,
  signalSend,
  start,
  suspendOnEnds,
  turn,
  waitForAll,
} from '../../src/testing/conformance/writes.ts'
import { connectTo, SERVER } from '../stores/postgres_server.ts'

/** Starts, claims and ends runs, parents with children among them, as fast as it can, and counts them. */
const [, , database = '', name = '', count = '0', port = ''] = process.argv
const db = connectTo(database, port === '' ? SERVER : { ...SERVER, port: Number(port) })
const store = new LucidStore({ db })
await store.open()
await store.registerWorker(newWorker(name))
const done = { started: 0, claimed: 0, committed: 0, lost: 0, refused: 0 }
flushCompileCache()
process.send?.('ready')
await once(process, 'message')

/** A parent starts two children at its first turn, and ends at its second. */
function turnOf(row: RunRow) {
  const isParent = row.workflow === 'parent'
  if (isParent && row.inboxSeq === 0) {
    const children = [0, 1].map((index) => ({
      run: newRun(`${row.id}.${index}`, {
        workflow: 'child',
        parent: parentLink(row.id, { index }),
      }),
      acknowledge: false,
    }))
    return turn(row, { opened: [waitForAll(0, children.length)], children, end: suspendOnEnds(2) })
  }
  const signals = row.workflow === 'export' ? [signalSend(row.id, `token ${row.id.length}`)] : []
  const closed = isParent ? [0] : []
  return turn(row, {
    ...{ records: [record(0)], signals, closed, seenInbox: row.inboxSeq, end: COMPLETE },
  })
}

const claimKeys = [CLAIM_KEY, ...['parent', 'child', 'export'].map(claimKeyOf)]
for (let index = 0; index < Number(count); index++) {
  // Half of the ids are asked for by every process, of which one gets each.
  const ids = [`shared ${index}`, `shared ${index + 1}`, `${name} ${index}`]
  const workflow = ['parent', 'import', 'export'][index % 3] ?? 'import'
  const order = name.endsWith('1') ? ids.toReversed() : ids
  const { answers } = await store.commit(order.map((id) => start(id, { workflow })))
  for (const answer of answers) if (answer.type === 'started' && answer.created) done.started++
  const rows = await store.claim({ owner: name, claimKeys, limit: 5 })
  done.claimed += rows.length
  const flush = await store.commit(rows.map(turnOf))
  for (const { type } of flush.answers) {
    if (type === 'committed' || type === 'lost' || type === 'refused') done[type]++
  }
  if (index % 20 === 0) await store.renewWorker(name)
}
await store.removeWorker(name)
process.send?.(done)
await store.close()
await db.manager.closeAll()
process.disconnect()

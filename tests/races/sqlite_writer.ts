import { once } from 'node:events'
import { flushCompileCache } from 'node:module'
import { LucidStore } from '../../src/stores/lucid/lucid_store.ts'
import {
  CLAIM_KEY,
  COMPLETE,
  newWorker,
  record,
  start,
  turn,
} from '../../src/testing/conformance/writes.ts'
import { connectTo } from '../stores/sqlite_database.ts'

/** Starts, claims and ends runs as fast as it can, and says how many of each. */
const [, , file = '', name = '', count = '0'] = process.argv
const db = connectTo(file)
const store = new LucidStore({ db })
await store.open()
await store.registerWorker(newWorker(name))
const done = { started: 0, claimed: 0, committed: 0, lost: 0 }
flushCompileCache()
process.send?.('ready')
await once(process, 'message')

for (let index = 0; index < Number(count); index++) {
  // Half of the ids are asked for by every process, of which one gets each.
  const id = index % 2 ? `shared ${index}` : `${name} ${index}`
  const {
    answers: [answer],
  } = await store.commit([start(id)])
  if (answer?.type === 'started' && answer.created) done.started++
  const rows = await store.claim({ owner: name, claimKeys: [CLAIM_KEY], limit: 3 })
  done.claimed += rows.length
  const turns = rows.map((row) => turn(row, { records: [record(0)], end: COMPLETE }))
  const { answers } = await store.commit(turns)
  for (const { type } of answers) {
    if (type === 'committed') done.committed++
    if (type === 'lost') done.lost++
  }
  if (index % 20 === 0) await store.renewWorker(name)
}
await store.removeWorker(name)
process.send?.(done)
await store.close()
await db.manager.closeAll()
process.disconnect()

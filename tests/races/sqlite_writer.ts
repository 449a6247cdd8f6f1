import { LucidStore } from '../../src/stores/lucid/lucid_store.ts'
import { CLAIM_KEY, COMPLETE, record, start, turn } from '../../src/testing/conformance/writes.ts'
import { connectTo } from '../stores/sqlite_database.ts'

/** Starts, claims and ends runs as fast as it can, and says how many of each as JSON. */
const [, , file = '', name = '', count = '0'] = process.argv
const db = connectTo(file)
const store = new LucidStore({ db })
await store.open()
await store.registerWorker({
  ...{ instance: name, name, leaseMs: 30_000, descriptor: '{}', takeOver: false },
})
const done = { started: 0, claimed: 0, committed: 0, lost: 0 }
console.log('ready')
await new Promise((resolve) => process.stdin.once('data', resolve))

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
console.log(JSON.stringify(done))
await store.close()
await db.manager.closeAll()
process.stdin.destroy()

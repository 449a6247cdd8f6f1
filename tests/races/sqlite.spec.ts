import { test } from '@japa/runner'
import {
  CLAIM_KEY,
  COMPLETE,
  newWorker,
  record,
  turn,
} from '../../src/testing/conformance/writes.ts'
import { SqliteDatabase } from '../stores/sqlite_database.ts'
import { raceOf } from './writers.ts'

const PROCESSES = 4
const ROUNDS = 200

test.group('SQLite under several processes', (group) => {
  let database: SqliteDatabase
  group.each.setup(async () => {
    database = await SqliteDatabase.create()
    return () => database.remove()
  })

  test('four processes that write as fast as they can are never refused, and each run is started, claimed and ended once', async ({
    assert,
  }) => {
    const script = new URL('./sqlite_writer.ts', import.meta.url)
    const { sum } = await raceOf(PROCESSES, script, { database: database.file, rounds: ROUNDS })
    const runs = ROUNDS / 2 + (PROCESSES * ROUNDS) / 2
    assert.equal(sum('started'), runs)
    assert.equal(sum('lost'), 0)
    assert.equal(sum('committed'), sum('claimed'))

    const store = await database.store()
    await store.registerWorker(newWorker('last'))
    const left = await store.claim({ owner: 'last', claimKeys: [CLAIM_KEY], limit: 1_000 })
    assert.equal(sum('claimed') + left.length, runs)
    await store.commit(left.map((row) => turn(row, { records: [record(0)], end: COMPLETE })))
    const [{ records }] = await database.db.rawQuery(
      'select count(*) as records from durable_history'
    )
    assert.equal(records, runs)
    assert.deepEqual(await store.findStranded(), [])
    const { runs: live } = await store.listRuns({ status: 'running' })
    assert.deepEqual(live, [])
  }).timeout(60_000)
})

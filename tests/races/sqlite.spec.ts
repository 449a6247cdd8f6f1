import { test } from '@japa/runner'
import {
  CLAIM_KEY,
  COMPLETE,
  newWorker,
  record,
  turn,
} from '../../src/testing/conformance/writes.ts'
import { TestProcess } from '../stores/sqlite_child.ts'
import { SqliteDatabase } from '../stores/sqlite_database.ts'

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
    const names = Array.from({ length: PROCESSES }, (_, index) => `w${index}`)
    const processes = names.map(
      (name) => new TestProcess(script, [database.file, name, String(ROUNDS)])
    )
    for (const one of processes) assert.equal(await one.line(), 'ready')
    for (const one of processes) one.say('go')
    const reports = await Promise.all(processes.map((one) => one.line()))
    assert.deepEqual(await Promise.all(processes.map((one) => one.ended())), [0, 0, 0, 0])

    const done = reports.map((report) => JSON.parse(report ?? '{}'))
    const sum = (key: string) => done.reduce((total, report) => total + report[key], 0)
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

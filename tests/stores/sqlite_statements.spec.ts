import { test } from '@japa/runner'
import {
  CLAIM_KEY,
  COMPLETE,
  FAIL,
  newWorker,
  record,
  requeue,
  start,
  startLeased,
  turn,
} from '../../src/testing/conformance/writes.ts'
import { SqliteDatabase, statusOf } from './sqlite_database.ts'
import { StatementCount } from './statement_count.ts'

test.group('SQLite statements', (group) => {
  let database: SqliteDatabase
  let count: StatementCount
  group.each.setup(async () => {
    database = await SqliteDatabase.create()
    count = new StatementCount()
    return () => database.remove()
  })

  const openStore = () => database.store({ trace: count.trace })

  test('a one-step run that its starter executes takes 8 in 2 transactions, and 4.1 among others', async ({
    assert,
  }) => {
    const store = await openStore()
    const run = async (ids: string[]) => {
      await store.commit(ids.map((id) => startLeased(id)))
      await store.commit(
        ids.map((id) => turn({ id, token: 1 }, { records: [record(0)], end: COMPLETE }))
      )
    }
    assert.deepEqual(await count.of(() => run(['r1'])), { statements: 8, transactions: 2 })
    const ten = Array.from({ length: 10 }, (_, index) => `s${index}`)
    assert.deepEqual(await count.of(() => run(ten)), { statements: 62, transactions: 2 })
  })

  test('a one-step run that another worker claims takes 15 in 3 transactions', async ({
    assert,
  }) => {
    const store = await openStore()
    await store.registerWorker(newWorker('w1'))
    const run = async () => {
      await store.commit([start('r1')])
      const [row] = await store.claim({ owner: 'w1', claimKeys: [CLAIM_KEY], limit: 10 })
      await store.load([{ runId: 'r1', resident: false, inboxAfter: 0 }])
      if (row) await store.commit([turn(row, { records: [record(0)], end: COMPLETE })])
    }
    assert.deepEqual(await count.of(run), { statements: 15, transactions: 3 })
    assert.equal(await statusOf(store, 'r1'), 'completed')
  })

  test('a further step takes 2 in one transaction, and 1.1 among others', async ({ assert }) => {
    const store = await openStore()
    const ids = Array.from({ length: 10 }, (_, index) => `r${index}`)
    await store.commit(ids.map((id) => startLeased(id)))
    const step = (of: string[], seq: number) => () =>
      store.commit(of.map((id) => turn({ id, token: 1 }, { records: [record(seq)] })))
    assert.deepEqual(await count.of(step(['r1'], 0)), { statements: 2, transactions: 1 })
    assert.deepEqual(await count.of(step(ids, 1)), { statements: 11, transactions: 1 })
  })

  test('requeues of runs that have come differently far share their texts, which are prepared once', async ({
    assert,
  }) => {
    const store = await openStore()
    const texts: string[][] = []
    for (const many of [1, 2, 3]) {
      const id = `r${many}`
      const records = Array.from({ length: many }, (_, seq) => record(seq))
      await store.commit([startLeased(id), turn({ id, token: 1 }, { records, end: FAIL })])
      const retire = records.map(({ seq }) => seq)
      await count.of(() => store.commit([requeue({ id, token: 1 }, { retire })]))
      texts.push([...count.seen])
    }
    for (const text of texts) assert.deepEqual(text, texts[0])
  })

  test('an idle worker reads once a round, and writes nothing but its renewal', async ({
    assert,
  }) => {
    const store = await openStore()
    await store.commit([start('unknown', { workflow: 'unknown' })])
    const claim = () => store.claim({ owner: 'w1', claimKeys: [CLAIM_KEY], limit: 10 })
    assert.deepEqual(await count.of(claim), { statements: 1, transactions: 0 })
    assert.deepEqual(await count.of(() => store.nextDueIn([CLAIM_KEY])), {
      statements: 1,
      transactions: 0,
    })
    assert.deepEqual(await count.of(() => store.recoverExpired()), {
      statements: 1,
      transactions: 0,
    })
    assert.deepEqual(await count.of(() => store.renewWorker('w1')), {
      statements: 1,
      transactions: 1,
    })
  })

  test('lists and questions about runs read neither payloads nor history (P10)', async ({
    assert,
  }) => {
    const store = await openStore()
    const work = async () => {
      await store.listRuns({
        status: 'pending',
        workflow: 'a',
        tag: 'b',
        namespace: 'c',
        parentId: 'd',
      })
      await store.findStranded()
      await store.childStates({ runId: 'r1', seq: 0 })
      await store.nextDueIn([CLAIM_KEY])
    }
    const { statements } = await count.of(work)
    assert.equal(statements, 4)
    for (const sql of count.seen) assert.notMatch(sql, /durable_payloads|durable_history/)
  })
})

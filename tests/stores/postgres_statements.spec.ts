import { test } from '@japa/runner'
import type { Write } from '../../src/core/change_set.ts'
import type { LucidStore } from '../../src/stores/lucid/lucid_store.ts'
import type { PgClient } from '../../src/stores/lucid/postgres/driver.ts'
import { lockStatements } from '../../src/stores/lucid/postgres/locked_rows.ts'
import { needsOf } from '../../src/stores/lucid/postgres/needs.ts'
import { PostgresSession } from '../../src/stores/lucid/postgres/session.ts'
import {
  CLAIM_KEY,
  COMPLETE,
  FAIL,
  newRun,
  newWorker,
  parentLink,
  record,
  requeue,
  signal,
  start,
  startLeased,
  SUSPEND,
  suspendOnEnds,
  turn,
  waitForAll,
  waitForSignal,
} from '../../src/testing/conformance/writes.ts'
import type { PostgresDatabase } from './postgres_database.ts'
import { usePostgres } from './postgres_group.ts'

test.group('PostgreSQL statements, BEGIN and COMMIT included', (group) => {
  let database: PostgresDatabase
  let store: LucidStore
  let statements: string[]

  usePostgres(group, async (created) => {
    database = created
    statements = []
    store = await database.store({ trace: (sql) => statements.push(sql) })
    await store.registerWorker(newWorker('w1'))
  })

  async function count(work: () => Promise<unknown>) {
    statements.length = 0
    await work()
    return statements.length
  }

  const ids = Array.from({ length: 10 }, (_, index) => `r${index}`)
  const end = (id: string) => turn({ id, token: 1 }, { records: [record(0)], end: COMPLETE })

  test('a one-step run that its starter executes takes 2, and 0.2 among ten', async ({
    assert,
  }) => {
    const run = async (of: string[]) => {
      await store.commit(of.map((id) => startLeased(id)))
      const { answers } = await store.commit(of.map(end))
      assert.isTrue(answers.every(({ type }) => type === 'committed'))
    }
    assert.equal(await count(() => run(['alone'])), 2)
    assert.equal(await count(() => run(ids)), 2)
  })

  test('one that another worker claims takes 4: start, claim, load, end', async ({ assert }) => {
    const run = async () => {
      await store.commit([start('r1')])
      const [row] = await store.claim({ owner: 'w1', claimKeys: [CLAIM_KEY], limit: 10 })
      await store.load([{ runId: 'r1', resident: false, inboxAfter: 0 }])
      if (row) await store.commit([end(row.id)])
    }
    assert.equal(await count(run), 4)
    const run1 = await store.getRun('r1')
    assert.equal(run1?.status, 'completed')
  })

  test('a further step takes 1, and 0.1 among ten', async ({ assert }) => {
    await store.commit(ids.map((id) => startLeased(id)))
    const step = (of: string[], seq: number) => () =>
      store.commit(of.map((id) => turn({ id, token: 1 }, { records: [record(seq)] })))
    assert.equal(await count(step(['r1'], 0)), 1)
    assert.equal(await count(step(ids, 1)), 1)
  })

  test('requeues of runs that have come differently far share one text', async ({ assert }) => {
    const texts: string[][] = []
    for (const [index, id] of ids.entries()) {
      const records = Array.from({ length: index + 1 }, (_, seq) => record(seq))
      await store.commit([startLeased(id), turn({ id, token: 1 }, { records, end: FAIL })])
      const retire = records.map(({ seq }) => seq)
      await count(() => store.commit([requeue({ id, token: 1 }, { retire })]))
      texts.push([...statements])
      const history = await store.getHistory(id)
      assert.deepEqual(
        history?.records.map(({ generation }) => generation),
        retire.map(() => 1)
      )
    }
    for (const text of texts) assert.deepEqual(text, texts[0])
  })

  test('children are started with the suspension of their parent in 1, and end, waking it, in 1', async ({
    assert,
  }) => {
    await store.commit([startLeased('p')])
    const children = ids.map((id, index) => ({
      run: newRun(`p.${id}`, { parent: parentLink('p', { index }) }),
      acknowledge: false,
    }))
    const opened = [waitForAll(0, children.length)]
    const suspend = turn({ id: 'p', token: 1 }, { opened, children, end: suspendOnEnds(10) })
    assert.equal(await count(() => store.commit([suspend])), 1)
    const rows = await store.claim({ owner: 'w1', claimKeys: [CLAIM_KEY], limit: 10 })
    assert.lengthOf(rows, 10)
    assert.equal(await count(() => store.commit(rows.map(({ id }) => end(id)))), 1)
    assert.equal(await store.nextDueIn([CLAIM_KEY]), 0)
  })

  test('a batch that touches tokens takes one round trip to lock and one to write', async ({
    assert,
  }) => {
    await store.commit([startLeased('r1')])
    await store.commit([
      turn({ id: 'r1', token: 1 }, { opened: [waitForSignal(0, 'go')], end: SUSPEND }),
    ])
    assert.equal(await count(() => store.commit([signal('s1', 'go')])), 12)
    assert.deepEqual(
      statements.map((sql) => sql.split(/\s+/)[0]),
      [
        ...['begin', 'select', 'select', 'select', 'select', 'select', 'select'],
        ...['update', 'update', 'insert', 'select', 'commit'],
      ]
    )
  })

  test('of many kept signals it reads those that the waits of a batch can take, and those that it sends', async ({
    assert,
  }) => {
    await store.commit(ids.map((id) => signal(id, 'go')))
    const session = await PostgresSession.over((await database.client()) as unknown as PgClient, {
      ...{ trace: undefined, statementMs: 10_000, lockMs: 1_000, onEnd: () => {} },
    })
    const read = async (writes: Write[]) => {
      const kept = lockStatements(needsOf(writes), { skipLocked: false }).get('kept')
      const [result] = await session.run(kept ? [kept] : [])
      return (result?.rows ?? []).map((row) => (row as { signal_id: string }).signal_id)
    }
    assert.deepEqual(await read([signal('new', 'go')]), [])
    assert.deepEqual(await read([signal('r5', 'go')]), ['r5'])
    const opened = [waitForSignal(0, 'go'), waitForSignal(1, 'go')]
    assert.deepEqual(await read([turn({ id: 'r', token: 1 }, { opened })]), ['r0', 'r1'])
  })

  test('an idle worker reads once a round, and writes nothing but its renewal', async ({
    assert,
  }) => {
    await store.commit([start('unknown', { workflow: 'unknown' })])
    const claim = { owner: 'w1', claimKeys: [CLAIM_KEY], limit: 10 }
    const before = await database.query('select pg_current_wal_insert_lsn()::text as at')
    assert.equal(await count(() => store.claim(claim)), 1)
    assert.equal(await count(() => store.nextDueIn([CLAIM_KEY])), 1)
    assert.equal(await count(() => store.recoverExpired()), 1)
    const after = await database.query('select pg_current_wal_insert_lsn()::text as at')
    assert.equal(before.length, after.length)
    assert.equal(await count(() => store.renewWorker('w1')), 1)
  })

  test('lists and questions about runs read neither payloads nor history (P10)', async ({
    assert,
  }) => {
    statements.length = 0
    await store.listRuns({
      ...{ status: 'pending', workflow: 'a', tag: 'b', namespace: 'c', parentId: 'd' },
    })
    await store.findStranded()
    await store.childStates({ runId: 'r1', seq: 0 })
    await store.nextDueIn([CLAIM_KEY])
    assert.lengthOf(statements, 4)
    for (const sql of statements) assert.notMatch(sql, /durable_payloads|durable_history/)
  })

  test('the few kinds of batches are few statements to prepare', async ({ assert }) => {
    const run = async (round: number) => {
      const of = ids.slice(0, 1 + (round % 10)).map((id) => `${id} ${round}`)
      await store.commit(of.map((id) => startLeased(id)))
      await store.commit(of.map((id) => turn({ id, token: 1 }, { records: [record(1)] })))
      await store.commit(of.map(end))
    }
    statements.length = 0
    for (let round = 0; round < 20; round++) await run(round)
    assert.equal(new Set(statements).size, 3)
  })
})

import { test } from '@japa/runner'
import type { Answer } from '../../src/core/change_set.ts'
import { E_ENGINE_STOPPED, E_STORE_BUSY } from '../../src/errors.ts'
import type { LucidStore } from '../../src/stores/lucid/lucid_store.ts'
import {
  COMPLETE,
  newRun,
  newWorker,
  parentLink,
  record,
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
import { Holder, sessions, untilSessions, untilWaiting } from './postgres_gate.ts'
import { usePostgres } from './postgres_group.ts'

test.group('PostgreSQL rows that a transaction of the application holds', (group) => {
  let database: PostgresDatabase
  let store: LucidStore

  usePostgres(group, async (emptied) => {
    database = emptied
    store = await database.store({ busyLimitMs: 300 })
  })

  const ids = Array.from({ length: 10 }, (_, index) => `r${index}`)

  async function holding(sql: string, values: unknown[] = []): Promise<Holder> {
    const holder = await Holder.begin(database)
    await holder.run(sql, values)
    return holder
  }

  const LOCK = 'select 1 from durable_runs where id = $1 for update'

  function later(answer: Answer | undefined): Promise<Answer> {
    if (answer?.type !== 'held') throw new Error(`The answer is ${answer?.type}`)
    return answer.answer
  }

  async function laterType(answer: Answer | undefined) {
    const { type } = await later(answer)
    return type
  }

  async function statusOf(id: string) {
    const run = await store.getRun(id)
    return run?.status ?? null
  }

  const end = (id: string) => turn({ id, token: 1 }, { records: [record(0)], end: COMPLETE })

  test('the others of the batch are written, and it is waited for on a third connection', async ({
    assert,
  }) => {
    await store.commit(ids.map((id) => startLeased(id)))
    assert.equal(await sessions(database), 2)
    const holder = await holding(LOCK, ['r3'])
    const { answers, news } = await store.commit(ids.map(end))
    const types = ids.map((id) => (id === 'r3' ? 'held' : 'committed'))
    assert.deepEqual(
      answers.map(({ type }) => type),
      types
    )
    assert.equal(news.ended.size, 9)
    await untilSessions(database, 3)
    const told = Promise.withResolvers<string[]>()
    store.onForeignChange((late) => told.resolve([...(late?.ended ?? [])]))
    await holder.commit()
    const answer = await later(answers[3])
    assert.equal(answer.type, 'committed')
    assert.deepEqual(await told.promise, ['r3'])
    assert.equal(await statusOf('r3'), 'completed')
    await untilSessions(database, 2)
  })

  test('later writes of the run come after it, and those of others do not wait', async ({
    assert,
  }) => {
    await store.commit([startLeased('r1'), startLeased('r2')])
    const holder = await holding(LOCK, ['r1'])
    const first = await store.commit([turn({ id: 'r1', token: 1 }, { records: [record(0)] })])
    const write = turn({ id: 'r1', token: 1 }, { records: [record(1)], end: COMPLETE })
    const second = await store.commit([end('r2'), write, start('r3')])
    const again = await store.commit([write])
    assert.deepEqual(
      second.answers.map(({ type }) => type),
      ['committed', 'held', 'started']
    )
    await holder.commit()
    const answers = [first.answers[0], second.answers[1], again.answers[0]].map(later)
    const settled = await Promise.all(answers)
    assert.deepEqual(
      settled.map(({ type }) => type),
      ['committed', 'committed', 'committed']
    )
    const history = await store.getHistory('r1')
    assert.deepEqual(
      history?.records.map(({ seq }) => seq),
      [0, 1]
    )
  })

  test('an end waits for the row of its parent, and a signal for that of its receiver', async ({
    assert,
  }) => {
    const children = [{ run: newRun('c', { parent: parentLink('p') }), acknowledge: false }]
    await store.commit([startLeased('p'), startLeased('receiver'), startLeased('r1')])
    await store.commit([
      turn(
        { id: 'p', token: 1 },
        { opened: [waitForAll(0, children.length)], children, end: suspendOnEnds(1) }
      ),
      turn({ id: 'receiver', token: 1 }, { opened: [waitForSignal(0, 'go')], end: SUSPEND }),
    ])
    await store.registerWorker(newWorker('w1'))
    await store.claim({ owner: 'w1', claimKeys: [newRun('').claimKey], limit: 1 })
    const holder = await holding(`${LOCK.replace('= $1', "in ('p', 'receiver')")}`)
    const { answers } = await store.commit([end('c'), signal('s1', 'go'), end('r1')])
    assert.deepEqual(
      answers.map(({ type }) => type),
      ['held', 'held', 'committed']
    )
    await holder.commit()
    assert.equal(await laterType(answers[0]), 'committed')
    assert.deepEqual(await later(answers[1]), { type: 'signalled', delivered: true })
    assert.deepEqual(await store.findStranded(), [])
  })

  test('two signals of one batch, of which each alone would go to a free receiver, leave others to be written', async ({
    assert,
  }) => {
    store = await database.store()
    for (const id of ['free', 'held', 'r1']) await store.commit([startLeased(id)])
    for (const id of ['free', 'held'])
      await store.commit([
        turn({ id, token: 1 }, { opened: [waitForSignal(0, 'go')], end: SUSPEND }),
      ])
    const holder = await holding(LOCK, ['held'])
    const { answers } = await store.commit([signal('s1', 'go'), signal('s2', 'go'), end('r1')])
    assert.deepEqual(await later(answers[0]), { type: 'signalled', delivered: true })
    assert.equal(await laterType(answers[2]), 'committed')
    const after = await store.commit([start('r2')])
    assert.deepEqual(
      after.answers.map(({ type }) => type),
      ['started']
    )
    await holder.rollback()
    assert.deepEqual(await later(answers[1]), { type: 'signalled', delivered: true })
    assert.deepEqual(await store.findStranded(), [])
  })

  test('a start waits for a transaction that has inserted the same id, and finds its run', async ({
    assert,
  }) => {
    store = await database.store()
    const trx = await database.db.transaction()
    await store.startWith(trx, start('r1', { workflow: 'export' }))
    const { answers } = await store.commit([start('r0'), start('r1'), start('r2')])
    const settled = await Promise.all(
      [0, 2].map(async (at) => {
        const answer = answers[at]
        return answer?.type === 'held' ? answer.answer : answer
      })
    )
    for (const answer of settled) assert.isTrue(answer?.type === 'started' && answer.created)
    await untilWaiting(database, 1)
    await trx.commit()
    const found = await later(answers[1])
    assert.isTrue(found.type === 'started' && !found.created && found.run.workflow === 'export')
  })

  test('a caller is told after the limit, a turn waits on', async ({ assert }) => {
    await store.commit([startLeased('r1')])
    const trx = await database.db.transaction()
    await store.startWith(trx, start('new'))
    const holder = await holding(LOCK, ['r1'])
    const { answers } = await store.commit([start('new'), end('r1')])
    const error = await later(answers[0]).catch((reason: unknown) => reason)
    assert.instanceOf(error, E_STORE_BUSY)
    await holder.rollback()
    await trx.rollback()
    assert.equal(await laterType(answers[1]), 'committed')
    assert.isNull(await store.getRun('new'))
  })

  test('what waits is rejected when the store is closed', async ({ assert }) => {
    await store.commit([startLeased('r1')])
    const holder = await holding(LOCK, ['r1'])
    const { answers } = await store.commit([end('r1')])
    const error = later(answers[0]).catch((reason: unknown) => reason)
    await store.close()
    assert.instanceOf(await error, E_ENGINE_STOPPED)
    await holder.rollback()
    await untilSessions(database, 0)
  })

  test('claims and reads pass over held rows', async ({ assert }) => {
    await store.registerWorker(newWorker('w1'))
    await store.commit(ids.map((id) => start(id)))
    const holder = await holding(LOCK, ['r3'])
    const claimed = await store.claim({
      ...{ owner: 'w1', claimKeys: [newRun('').claimKey], limit: 100 },
    })
    assert.sameMembers(
      claimed.map(({ id }) => id),
      ids.filter((id) => id !== 'r3')
    )
    assert.equal(await statusOf('r3'), 'pending')
    await holder.rollback()
  })
})

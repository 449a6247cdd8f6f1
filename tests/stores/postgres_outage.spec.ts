import { test } from '@japa/runner'
import type { NameLock } from '../../src/contracts/store.ts'
import type { Write } from '../../src/core/change_set.ts'
import type { LucidStore } from '../../src/stores/lucid/lucid_store.ts'
import { PostgresDialect } from '../../src/stores/lucid/postgres/dialect.ts'
import { PostgresDeadlineError } from '../../src/stores/lucid/postgres/error_class.ts'
import {
  CLAIM_KEY,
  COMPLETE,
  newRun,
  newWorker,
  parentLink,
  record,
  signal,
  signalSend,
  sleep,
  start,
  startLeased,
  SUSPEND,
  suspendOnEnds,
  turn,
  waitForAll,
  waitForSignal,
} from '../../src/testing/conformance/writes.ts'
import { DurableApp } from '../support/durable_app.ts'
import { until } from '../support/until.ts'
import type { PostgresDatabase } from './postgres_database.ts'
import { Holder, untilWaiting } from './postgres_gate.ts'
import { usePostgres } from './postgres_group.ts'
import type { PostgresProxy } from './postgres_proxy.ts'
import { connectTo } from './postgres_server.ts'
import { proxiedStore } from './proxied_store.ts'

test.group('PostgreSQL when connections are lost', (group) => {
  let database: PostgresDatabase
  let proxy: PostgresProxy
  /** Through the proxy. */
  let store: LucidStore
  /** Not through it. */
  let direct: LucidStore

  usePostgres(group, async (created) => {
    database = created
    const proxied = await proxiedStore(database, { busyLimitMs: 1_000 })
    ;({ proxy, store } = proxied)
    direct = await database.store()
    await direct.registerWorker(newWorker('w1'))
    return () => proxied.end()
  })

  async function recordsOf(id: string) {
    const history = await direct.getHistory(id)
    return (history?.records ?? []).map(({ seq, token }) => [seq, token])
  }

  async function recoveriesOf(id: string) {
    const run = await direct.getRun(id)
    return run?.recoveryAttempts
  }

  async function numbersOf(runId: string) {
    const [loaded] = await direct.load([{ runId, resident: true, inboxAfter: 0 }])
    return (loaded?.inbox ?? []).map(({ no }) => no)
  }

  async function parentOf(child: string) {
    const children = [{ run: newRun(child, { parent: parentLink('parent') }), acknowledge: false }]
    await direct.commit([startLeased('parent')])
    await direct.commit([
      turn(
        { id: 'parent', token: 1 },
        { opened: [waitForAll(0, children.length)], children, end: suspendOnEnds(1) }
      ),
    ])
    await direct.claim({ owner: 'w1', claimKeys: [CLAIM_KEY], limit: 10 })
  }

  const child = { run: newRun('a child', { parent: parentLink('r1') }), acknowledge: false }
  const batches: Record<string, Write[]> = {
    'the end of a run': [turn({ id: 'r1', token: 1 }, { records: [record(0)], end: COMPLETE })],
    'an end that wakes a parent': [turn({ id: 'c', token: 1 }, { end: COMPLETE })],
    'a step': [turn({ id: 'r1', token: 1 }, { records: [record(0)] })],
    'a child that is started': [
      turn({ id: 'r1', token: 1 }, { opened: [waitForAll(0, 1)], children: [child] }),
    ],
    'a wait': [turn({ id: 'r1', token: 1 }, { opened: [sleep(0, 60_000)] })],
    'a suspension': [
      turn(
        { id: 'r1', token: 1 },
        { opened: [sleep(0, 60_000)], end: { ...SUSPEND, dueIn: 60_000 } }
      ),
    ],
    'a wait for a signal': [
      turn({ id: 'r1', token: 1 }, { opened: [waitForSignal(0, 'go')], end: SUSPEND }),
    ],
    'a turn that sends signals': [
      turn({ id: 'r1', token: 1 }, { records: [record(0)], signals: [signalSend('s1', 'go')] }),
    ],
    'a start': [start('new')],
    'a start under a lease': [startLeased('new')],
    'a signal': [signal('s1', 'go')],
  }

  for (const [title, writes] of Object.entries(batches)) {
    const isShort = title.includes('signal')
    test(`${title} whose answer is lost after the commit is applied once`, async ({ assert }) => {
      await direct.commit([startLeased('r1')])
      await parentOf('c')
      await store.commit([startLeased('warm')])
      const lost = proxy.loseAnswer(isShort ? 'COMMIT' : '')
      const { answers } = await store.commit(writes)
      await lost
      const types = answers.map((answer) => [
        answer.type,
        answer.type === 'started' && answer.created,
        answer.type === 'signalled' && answer.delivered,
      ])
      const isStart = title.includes('start') && writes[0]?.type === 'start'
      const type = writes[0]?.type === 'signal' ? 'signalled' : isStart ? 'started' : 'committed'
      assert.deepEqual(types, [[type, isStart, false]])
      const [write] = writes
      if (write?.type === 'turn') {
        assert.deepEqual(
          await recordsOf(write.runId),
          write.records.map(({ seq }) => [seq, 1])
        )
        assert.lengthOf(
          await direct.childStates({ runId: write.runId, seq: 0 }),
          write.children.length
        )
      }
      if (title.includes('parent')) assert.deepEqual(await numbersOf('parent'), [1])
      if (title.includes('sends') || title === 'a signal') {
        const kept = await database.query('select signal_id from durable_signals')
        assert.deepEqual(kept, [{ signal_id: 's1' }])
      }
      assert.deepEqual(await direct.findStranded(), [])
    })
  }

  test('a session that is ended before its COMMIT has applied nothing, and the batch is sent again', async ({
    assert,
  }) => {
    for (const signals of [[], [signalSend('s1', 'go')]]) {
      const id = `run ${signals.length}`
      await direct.commit([startLeased(id)])
      const holder = await Holder.begin(database)
      await holder.lockRun(id)
      const commit = store.commit([
        turn({ id, token: 1 }, { records: [record(0)], signals, end: COMPLETE }),
      ])
      const [pid] = await untilWaiting(database, 1)
      await database.query(`select pg_terminate_backend(${pid})`)
      await holder.rollback()
      const { answers } = await commit
      assert.equal(answers[0]?.type, 'committed')
      assert.deepEqual(await recordsOf(id), [[0, 1]])
    }
  })

  test('runs of a claim whose answer is lost are handed out by the next, under the same token', async ({
    assert,
  }) => {
    await direct.commit([start('r1'), start('r2')])
    const request = { owner: 'w1', claimKeys: [CLAIM_KEY], limit: 10 }
    await store.claim({ ...request, claimKeys: ['warm'] })
    const lost = proxy.loseAnswer()
    await assert.rejects(() => store.claim(request))
    await lost
    const rows = await store.claim(request)
    assert.deepEqual(rows.map(({ id, token }) => [id, token]).toSorted(), [
      ['r1', 1],
      ['r2', 1],
    ])
    assert.deepEqual(await store.claim(request), [])
    assert.equal(await recoveriesOf('r1'), 0)
  })

  test('a start under a lease that is given up while the server is away is not left behind', async ({
    assert,
  }) => {
    await store.commit([start('warm', { workflow: 'other' })])
    const lost = proxy.loseAnswer()
    void lost.then(() => proxy.down())
    await assert.rejects(() => store.commit([startLeased('r1')]))
    proxy.up()
    const request = { owner: 'w1', claimKeys: [CLAIM_KEY], limit: 10 }
    const rows = await store.claim(request)
    assert.deepEqual(
      rows.map(({ id, token }) => [id, token]),
      [['r1', 1]]
    )
    assert.deepEqual(await store.claim(request), [])
  })

  test('while the server is away everything is rejected within the limit, and goes on after it', async ({
    assert,
  }) => {
    await store.commit([startLeased('r1')])
    proxy.down()
    const begin = performance.now()
    const calls = [
      store.commit([turn({ id: 'r1', token: 1 }, { records: [record(0)] })]),
      store.claim({ owner: 'w1', claimKeys: [CLAIM_KEY], limit: 1 }),
      store.getRun('r1'),
      store.renewWorker('w1'),
      store.recoverExpired(),
    ]
    for (const { status } of await Promise.allSettled(calls)) assert.equal(status, 'rejected')
    assert.isBelow(performance.now() - begin, 4_000)
    proxy.up()
    const { answers } = await store.commit([turn({ id: 'r1', token: 1 }, { records: [record(0)] })])
    assert.equal(answers[0]?.type, 'committed')
    assert.isTrue(await store.renewWorker('w1'))
    assert.deepEqual(await store.recoverExpired(), { workers: 0, runs: 0 })
    assert.equal(await recoveriesOf('r1'), 0)
  })

  test('a worker that is stopped while the server is away comes to its end', async ({
    cleanup,
  }) => {
    const app = new DurableApp({ store, options: { drainMs: 1 } })
    cleanup(() => app.close())
    const worker = await app.work()
    proxy.down()
    await worker.stop()
  })

  test('a server that says nothing loses its connection after the deadline', async ({ assert }) => {
    const db = connectTo(database.name, proxy.address)
    const dialect = new PostgresDialect({
      db,
      ...{ connection: 'app', direct: 'app', limitMs: 0, statementMs: 100, trace: undefined },
      warn: () => {},
    })
    await dialect.open()
    await dialect.flush([startLeased('r1')])
    proxy.stall()
    const error = await dialect.flush([start('r2')]).catch((reason: unknown) => reason)
    assert.instanceOf(error, PostgresDeadlineError)
    proxy.up()
    const { answers } = await dialect.flush([start('r3')])
    assert.equal(answers[0]?.type, 'started')
    await dialect.close()
    await db.manager.closeAll()
  })

  test('a statement that takes too long is ended by the server', async ({ assert }) => {
    const db = database.connection()
    const dialect = new PostgresDialect({
      db,
      ...{ connection: 'app', direct: 'app', limitMs: 0, statementMs: 100, trace: undefined },
      warn: () => {},
    })
    await dialect.open()
    const slow = { sql: 'select pg_sleep(5)', values: [] }
    await assert.rejects(() => dialect.read(slow), /statement timeout/)
    await dialect.close()
  })

  test('a lost name is taken again with the next connection', async ({ assert }) => {
    const lock = await store.lockName('importer')
    assert.isNotNull(lock)
    const [held] = await database.query<{ pid: number }>(
      `select pid from pg_locks where locktype = 'advisory' and database =
        (select oid from pg_database where datname = current_database())`
    )
    const back = Promise.withResolvers<void>()
    store.onForeignChange(() => back.resolve())
    await database.query(`select pg_terminate_backend(${held?.pid})`)
    await back.promise
    assert.isNull(await direct.lockName('importer'))
    await lock?.release()
    assert.isNotNull(await direct.lockName('importer'))
  })

  test('a name for which a connection had to be opened is free when it is released', async ({
    assert,
  }) => {
    proxy.down()
    await assert.rejects(() => store.renewWorker('w1'))
    proxy.up()
    let lock: NameLock | null = null
    while (lock === null) lock = await store.lockName('importer').catch(() => null)
    assert.isNull(await direct.lockName('importer'))
    await lock.release()
    assert.isNotNull(await direct.lockName('importer'))
  })

  test('who has lost a name that another has taken since is told', async ({ assert }) => {
    const lock = await store.lockName('importer')
    const lost = Promise.withResolvers<string>()
    lock?.onLost?.(() => lost.resolve('lost'))
    proxy.down()
    let taken = await direct.lockName('importer')
    while (taken === null) taken = await direct.lockName('importer')
    proxy.up()
    await until(() => store.renewWorker('w1').catch(() => false))
    assert.equal(await lost.promise, 'lost')
    await lock?.release()
    await taken.release()
  })

  test('listeners are told after every reconnection that anything may have happened', async ({
    assert,
  }) => {
    const told = Promise.withResolvers<unknown>()
    store.onForeignChange((news) => told.resolve(news))
    proxy.down()
    proxy.up()
    await until(() => store.renewWorker('w1').catch(() => false))
    assert.isUndefined(await told.promise)
  })
})

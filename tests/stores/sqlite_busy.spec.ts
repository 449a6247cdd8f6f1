import { test } from '@japa/runner'
import type { TestContext } from '@japa/runner/core'
import { setInterval } from 'node:timers'
import { E_STORE_BUSY } from '../../src/errors.ts'
import { start } from '../../src/testing/conformance/writes.ts'
import { SqliteDatabase, statusOf } from './sqlite_database.ts'

test.group('SQLite while a transaction of the application writes', (group) => {
  let database: SqliteDatabase
  group.each.setup(async () => {
    database = await SqliteDatabase.create()
    await database.db.rawQuery('create table orders (id integer primary key)')
    return () => database.remove()
  })

  /** Rolled back at the latest when the test is over: the database is not removed before. */
  async function openTransaction(cleanup: TestContext['cleanup']) {
    const trx = await database.db.transaction()
    cleanup(async () => {
      if (!trx.isCompleted) await trx.rollback()
    })
    await trx.insertQuery().table('orders').insert({ id: 1 })
    return trx
  }

  /** Counts how often the event loop comes round to a timer of 1 ms. */
  function ticking() {
    const seen = { ticks: 0 }
    const timer = setInterval(() => seen.ticks++, 1)
    return { seen, stop: () => clearInterval(timer) }
  }

  /** Resolves when the store has been refused `count` times. */
  function refusals(count: number) {
    const reached = Promise.withResolvers<void>()
    let left = count
    const trace = (sql: string) => {
      if (sql === 'begin immediate' && --left === 0) reached.resolve()
    }
    return { trace, reached: reached.promise }
  }

  test('commits wait for it, and then succeed', async ({ assert, cleanup }) => {
    const { trace, reached } = refusals(5)
    const store = await database.store({ trace })
    const trx = await openTransaction(cleanup)
    const commit = store.commit([start('r1')])
    await reached
    assert.isNull(await store.getRun('r1'))
    await trx.commit()
    const { answers } = await commit
    assert.equal(answers[0]?.type, 'started')
    assert.equal(await statusOf(store, 'r1'), 'pending')
  })

  test('commits fail after the limit and say what to do, and the event loop goes on', async ({
    assert,
    cleanup,
  }) => {
    const store = await database.store({ busyLimitMs: 200 })
    const trx = await openTransaction(cleanup)
    const { seen, stop } = ticking()
    const error = await store.commit([start('r1')]).catch((reason: unknown) => reason)
    stop()
    assert.instanceOf(error, E_STORE_BUSY)
    assert.match(String(error), /Pass a start the transaction .*\{ client: trx \}/)
    assert.isAbove(seen.ticks, 20)
    await trx.rollback()
    assert.isNull(await store.getRun('r1'))
    await store.commit([start('r1')])
    assert.equal(await statusOf(store, 'r1'), 'pending')
  })

  test('an idle worker is not held up: reads and claims that find nothing answer', async ({
    assert,
    cleanup,
  }) => {
    const store = await database.store({ busyLimitMs: 0 })
    const trx = await openTransaction(cleanup)
    assert.deepEqual(await store.claim({ owner: 'w1', claimKeys: ['a', 'b'], limit: 9 }), [])
    assert.isNull(await store.nextDueIn(['a', 'b']))
    assert.deepEqual(await store.recoverExpired(), { workers: 0, runs: 0 })
    assert.deepEqual(await store.findStranded(), [])
    await trx.rollback()
  })
})

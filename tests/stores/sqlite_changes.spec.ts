import { test } from '@japa/runner'
import { start } from '../../src/testing/conformance/writes.ts'
import { SqliteDatabase } from './sqlite_database.ts'

test.group('SQLite changes by others', (group) => {
  let database: SqliteDatabase
  group.each.setup(async () => {
    database = await SqliteDatabase.create()
    return () => database.remove()
  })

  const POLL = 'pragma data_version'

  test('a listener is told when another connection has written', async ({ assert }) => {
    const store = await database.store()
    const told = Promise.withResolvers<string>()
    const stop = store.onForeignChange(() => told.resolve('told'))
    await database.db.rawQuery(`insert into durable_meta (name, value) values ('other', 1)`)
    assert.equal(await told.promise, 'told')
    stop()
  })

  test('writes of its own are not told', async ({ assert }) => {
    const polled = Promise.withResolvers<void>()
    let left = Infinity
    const store = await database.store({
      trace: (sql) => {
        if (sql === POLL && --left === 0) polled.resolve()
      },
    })
    let calls = 0
    const stop = store.onForeignChange(() => calls++)
    await store.commit([start('r1')])
    left = 3
    await polled.promise
    stop()
    assert.equal(calls, 0)
  })

  test('polls from the first listener to the last', async ({ assert }) => {
    let polls = 0
    const twice = Promise.withResolvers<void>()
    const store = await database.store({
      trace: (sql) => {
        if (sql === POLL && ++polls === 3) twice.resolve()
      },
    })
    assert.equal(polls, 0)
    const stops = [store.onForeignChange(() => {}), store.onForeignChange(() => {})]
    assert.equal(polls, 1)
    stops[0]?.()
    await twice.promise
    stops[1]?.()
    stops[1]?.()
    const timers = process.getActiveResourcesInfo().filter((name) => name === 'Timeout')
    const again = store.onForeignChange(() => {})
    assert.equal(polls, 4)
    again()
    const after = process.getActiveResourcesInfo().filter((name) => name === 'Timeout')
    assert.lengthOf(after, timers.length)
  })
})

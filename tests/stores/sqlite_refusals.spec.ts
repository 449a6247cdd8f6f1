import { test } from '@japa/runner'
import { COMPLETE, record, start, startLeased, turn } from '../../src/testing/conformance/writes.ts'
import { idsIn, SqliteDatabase, statusOf } from './sqlite_database.ts'

test.group('SQLite batch with rows that the database refuses', (group) => {
  let database: SqliteDatabase
  group.each.setup(async () => {
    database = await SqliteDatabase.create()
    await database.db.rawQuery(`create trigger refuse before insert on durable_runs
      when new.id like 'bad%' begin select raise(abort, 'refused by a trigger'); end`)
    return () => database.remove()
  })

  test('only the offending run is refused, wherever it stands in the batch', async ({ assert }) => {
    const store = await database.store()
    for (const at of [0, 3, 6]) {
      const ids = Array.from({ length: 7 }, (_, index) =>
        index === at ? `bad${at}` : `ok${at}.${index}`
      )
      const { answers, news } = await store.commit(ids.map((id) => start(id)))
      assert.deepEqual(
        answers.map(({ type }) => type),
        ids.map((id) => (id.startsWith('bad') ? 'refused' : 'started'))
      )
      assert.equal(news.due.size, 1)
      for (const id of ids) assert.equal((await statusOf(store, id)) === null, id.startsWith('bad'))
    }
  })

  test('the answer carries the error of the database', async ({ assert }) => {
    const store = await database.store()
    const { answers } = await store.commit([start('bad')])
    assert.isTrue(answers[0]?.type === 'refused')
    assert.match(String(answers[0]?.type === 'refused' && answers[0].error), /refused by a trigger/)
  })

  test('later writes of a refused run are refused with it, and nothing of it is left', async ({
    assert,
  }) => {
    const store = await database.store()
    await store.commit([startLeased('r1'), startLeased('r2')])
    const r1 = { id: 'r1', token: 1 }
    await store.commit([turn(r1, { records: [record(0)] })])
    const { answers, news } = await store.commit([
      turn({ id: 'r2', token: 1 }, { records: [record(0)] }),
      turn(r1, { records: [record(1), record(0)] }),
      turn({ id: 'r2', token: 1 }, { end: COMPLETE }),
      turn(r1, { end: COMPLETE }),
    ])
    assert.deepEqual(
      answers.map(({ type }) => type),
      ['committed', 'refused', 'committed', 'refused']
    )
    assert.deepEqual([...news.ended], ['r2'])
    assert.equal(await statusOf(store, 'r1'), 'running')
    const history = await store.getHistory('r1')
    assert.lengthOf(history?.records ?? [], 1)
    assert.equal(await statusOf(store, 'r2'), 'completed')
  })

  test('nothing is applied when a trigger gives up the whole transaction', async ({ assert }) => {
    const store = await database.store()
    await database.db.rawQuery(`create trigger abandon before insert on durable_runs
      when new.id = 'worst' begin select raise(rollback, 'given up by a trigger'); end`)
    await assert.rejects(() => store.commit(['r1', 'r2', 'worst', 'r3'].map((id) => start(id))))
    assert.deepEqual(await idsIn(store), [])
    await store.commit([start('r1')])
    assert.equal(await statusOf(store, 'r1'), 'pending')
  })

  test('an error of another kind rejects the whole batch and applies nothing', async ({
    assert,
  }) => {
    const store = await database.store()
    await database.db.rawQuery('drop table durable_payloads')
    await assert.rejects(() => store.commit([start('r1'), start('r2')]), /no such table/)
    assert.deepEqual(await idsIn(store), [])
  })
})

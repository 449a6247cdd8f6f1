import { test } from '@japa/runner'
import { newRun, start } from '../../src/testing/conformance/writes.ts'
import { idsIn, SqliteDatabase } from './sqlite_database.ts'

test.group('SQLite start in the transaction of a caller', (group) => {
  let database: SqliteDatabase
  group.each.setup(async () => {
    database = await SqliteDatabase.create()
    await database.db.rawQuery('create table orders (id integer primary key)')
    return () => database.remove()
  })

  test('the run exists with the rows of the caller, once they are committed', async ({
    assert,
  }) => {
    const store = await database.store()
    const run = newRun('r1', { tags: ['blue', 'blue'], input: '{"v":7}' })
    const trx = await database.db.transaction()
    await trx.insertQuery().table('orders').insert({ id: 1 })
    const answer = await store.startWith(trx, { type: 'start', run, leaseTo: null })
    assert.isTrue(answer.created)
    assert.isNull(await store.getRun('r1'))
    await trx.commit()
    const stored = await store.getRun('r1')
    assert.deepEqual(stored, {
      ...answer.run,
      ...{ input: '{"v":7}', output: null, error: null, tags: ['blue'], attributes: {} },
    })
    assert.equal(await store.nextDueIn([run.claimKey]), 0)
  })

  test('the run never exists when the caller rolls back', async ({ assert }) => {
    const store = await database.store()
    const trx = await database.db.transaction()
    await store.startWith(trx, start('r1'))
    await trx.rollback()
    assert.isNull(await store.getRun('r1'))
  })

  test('the answer is that of a commit: a taken id gives the run that has it', async ({
    assert,
  }) => {
    const store = await database.store()
    const { answers } = await store.commit([start('r1', { workflow: 'export' })])
    const [before] = answers
    const trx = await database.db.transaction()
    const answer = await store.startWith(trx, start('r1'))
    const again = await store.startWith(trx, start('r2'))
    const repeated = await store.startWith(trx, start('r2'))
    await trx.commit()
    assert.isTrue(before?.type === 'started' && before.created)
    assert.deepEqual(answer, { ...before, created: false })
    assert.deepEqual(repeated, { ...again, created: false })
    assert.sameMembers(await idsIn(store), ['r1', 'r2'])
  })
})

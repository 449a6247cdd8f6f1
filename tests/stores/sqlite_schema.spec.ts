import { test } from '@japa/runner'
import { BaseSchema } from '@adonisjs/lucid/schema'
import { existsSync } from 'node:fs'
import { LucidStore } from '../../src/stores/lucid/lucid_store.ts'
import { createDurableTables, dropDurableTables } from '../../src/stores/lucid/schema.ts'
import { start } from '../../src/testing/conformance/writes.ts'
import { connectTo, idsIn, SqliteDatabase, statusOf } from './sqlite_database.ts'

test.group('SQLite schema', (group) => {
  let database: SqliteDatabase
  group.each.setup(async () => {
    database = await SqliteDatabase.empty()
    return () => database.remove()
  })

  async function migrate(change: typeof createDurableTables) {
    const { schema } = database.db.connection()
    change(schema, { version: 1 })
    await schema
  }

  async function tables(): Promise<string[]> {
    const found: { name: string }[] = await database.db.rawQuery(
      `select name from sqlite_schema where type = 'table' and name like 'durable%'`
    )
    return found.map(({ name }) => name)
  }

  test('open() says that the tables are missing, and which command makes them', async ({
    assert,
  }) => {
    await assert.rejects(() => database.store(), /missing on connection "app".*durable:migration/)
  })

  test('open() says that tables are behind when a column is missing', async ({ assert }) => {
    await migrate(createDurableTables)
    await database.db.rawQuery('alter table durable_waits drop column target')
    await assert.rejects(
      () => database.store(),
      'The tables of durable on connection "app" have version 0, and this package needs 1. Run ' +
        '"node ace durable:migration" and "node ace migration:run"'
    )
  })

  test('open() succeeds after it has failed and the tables have been made', async ({ assert }) => {
    const store = new LucidStore({ db: database.db })
    await assert.rejects(() => store.open())
    await migrate(createDurableTables)
    await store.open()
    assert.deepEqual(await idsIn(store), [])
    await store.close()
  })

  test('dropping the tables leaves none', async ({ assert }) => {
    await migrate(createDurableTables)
    assert.lengthOf(await tables(), 10)
    await migrate(dropDurableTables)
    assert.deepEqual(await tables(), [])
  })

  test('a migration makes the tables and takes them away again', async ({ assert }) => {
    class Migration extends BaseSchema {
      override async up() {
        createDurableTables(this.schema, { version: 1 })
      }
      override async down() {
        dropDurableTables(this.schema, { version: 1 })
      }
    }
    const migration = (dryRun: boolean) =>
      new Migration(database.db.connection(), 'durable', dryRun)
    const queries = await migration(true).execUp()
    assert.include(String(queries), 'create table durable_runs')
    assert.deepEqual(await tables(), [])
    await migration(false).execUp()
    await database.store()
    await migration(false).execDown()
    assert.deepEqual(await tables(), [])
  })

  test('columns that a later version has added do no harm', async ({ assert }) => {
    await migrate(createDurableTables)
    await database.db.rawQuery('alter table durable_runs add column later text')
    const store = await database.store()
    const { answers } = await store.commit([start('r1')])
    assert.equal(answers[0]?.type, 'started')
  })
})

test.group('SQLite connection', (group) => {
  let database: SqliteDatabase
  group.each.setup(async () => {
    database = await SqliteDatabase.create()
    return () => database.remove()
  })

  test('nothing touches the database before open()', async ({ assert }) => {
    const file = `${database.file}.untouched`
    const db = connectTo(file)
    const store = new LucidStore({ db })
    assert.isFalse(existsSync(file))
    assert.isFalse(db.manager.has('durable:app'))
    await store.close()
    assert.isFalse(existsSync(file))
  })

  test('refuses a database in memory, since each connection has one of its own', async ({
    assert,
  }) => {
    const db = connectTo(':memory:')
    await assert.rejects(
      () => new LucidStore({ db }).open(),
      /connection "app" is an in-memory database, which every connection has for itself: use a file/
    )
    assert.isFalse(db.manager.has('durable:app'))
    await db.manager.closeAll()
  })

  test('refuses a connection that is not configured', async ({ assert }) => {
    await assert.rejects(
      () => database.store({ connection: 'reports' }),
      /connection "reports" is not in config\/database.ts/
    )
  })

  test('writes ahead, and asks for every commit to be synced', async ({ assert }) => {
    const statements: string[] = []
    const store = await database.store({ trace: (sql) => statements.push(sql) })
    await store.commit([start('r1')])
    const [mode] = await database.connection().rawQuery('pragma journal_mode')
    assert.equal(mode.journal_mode, 'wal')
    assert.include(statements, 'pragma synchronous = full')
  })

  test('gives its connection back and can be opened again', async ({ assert }) => {
    const store = await database.store()
    await store.commit([start('r1')])
    await store.close()
    await store.close()
    assert.isFalse(database.db.manager.has('durable:app'))
    await assert.rejects(() => store.now(), /engine has been stopped/)
    await store.open()
    assert.equal(await statusOf(store, 'r1'), 'pending')
  })

  test('does not keep the application from closing its connections', async ({ assert }) => {
    const store = await database.store()
    await database.db.manager.closeAll()
    await store.commit([start('r1')])
    assert.equal(await statusOf(store, 'r1'), 'pending')
  })

  test('does not run through the application pool, which one transaction would block', async ({
    assert,
  }) => {
    const store = await database.store()
    const trx = await database.db.transaction()
    await trx.rawQuery('select * from durable_runs')
    await store.commit([start('r1')])
    assert.deepEqual(await idsIn(store), ['r1'])
    await trx.rollback()
  })
})

import { test } from '@japa/runner'
import { E_INVALID_CONFIG, E_SCHEMA_BEHIND, E_SCHEMA_MISSING } from '../../src/errors.ts'
import { LucidStore } from '../../src/stores/lucid/lucid_store.ts'
import {
  createDurableTables,
  dropDurableTables,
  tableNames,
} from '../../src/stores/lucid/schema.ts'
import {
  COMPLETE,
  newRun,
  record,
  start,
  startLeased,
  turn,
} from '../../src/testing/conformance/writes.ts'
import { PostgresDatabase } from './postgres_database.ts'
import { sessions } from './postgres_gate.ts'
import { SKIPPED } from './postgres_server.ts'

test.group('PostgreSQL tables', (group) => {
  let database: PostgresDatabase
  group.each.setup(async () => {
    if (SKIPPED !== null) return () => {}
    database = await PostgresDatabase.empty()
    return () => database.remove()
  })
  group.tap((each) => each.skip(SKIPPED !== null, SKIPPED ?? ''))

  async function create(schemaName?: string) {
    const { schema } = database.db.connection()
    if (schemaName) void schema.raw(`set local search_path to ${schemaName}`)
    createDurableTables(schema, { version: 1 })
    await schema
  }

  test('a store without its tables is refused, says what to do, and leaves no connection', async ({
    assert,
  }) => {
    const store = new LucidStore({ db: database.db })
    const error = await store.open().catch((reason: unknown) => reason)
    assert.instanceOf(error, E_SCHEMA_MISSING)
    assert.equal(await sessions(database), 0)
    await create()
    await store.open()
    await store.open()
    assert.deepEqual(await store.listWorkers(), [])
    await store.close()
    await store.close()
    assert.equal(await sessions(database), 0)
    await store.open()
    assert.deepEqual(await store.listWorkers(), [])
    await store.close()
  })

  test('tables of an older version are refused', async ({ assert }) => {
    await create()
    await database.query('alter table durable_inbox drop column child_event')
    const error = await database.store().catch((reason: unknown) => reason)
    assert.instanceOf(error, E_SCHEMA_BEHIND)
  })

  test('they are taken away again, and nothing of them is left', async ({ assert }) => {
    await create()
    const { schema } = database.db.connection()
    dropDurableTables(schema, { version: 1 })
    await schema
    const left = await database.query(
      `select relname from pg_class where relname like 'durable%' and relkind in ('r', 'i', 'S')`
    )
    assert.deepEqual(left, [])
  })

  test('keys are compared by their bytes, whatever the collation of the database', async ({
    assert,
  }) => {
    await create()
    const columns = await database.query<{ name: string }>(
      `select c.relname || '.' || a.attname as name from pg_attribute a
        join pg_class c on c.oid = a.attrelid and c.relkind = 'r' and c.relname like 'durable%'
        join pg_index i on i.indrelid = c.oid and a.attnum = any(i.indkey)
        join pg_collation l on l.oid = a.attcollation where l.collname <> 'C'`
    )
    assert.deepEqual(columns, [])
    const indexed = await database.query(
      `select distinct tablename from pg_indexes where tablename like 'durable%'`
    )
    assert.lengthOf(indexed, tableNames().length)
  })

  test('two schemas of one database are two installations', async ({ assert }) => {
    const stores: LucidStore[] = []
    for (const name of ['one', 'two']) {
      await database.query(`create schema ${name}`)
      const db = database.connection({ searchPath: [name] })
      const { schema } = db.connection()
      createDurableTables(schema, { version: 1 })
      await schema
      stores.push(await database.store({ db }))
    }
    const [one, two] = stores
    await one?.commit([start('r1')])
    assert.isNull(await two?.getRun('r1'))
    assert.isNotNull(await one?.lockName('a'))
    assert.isNotNull(await two?.lockName('a'))
    const told: string[] = []
    two?.onForeignChange(() => told.push('two'))
    await one?.commit([start('r2')])
    await two?.advanceClock(1)
    assert.deepEqual(told, ['two'])
  })

  test('a connection that is not in the configuration is refused', async ({ assert }) => {
    const store = new LucidStore({ db: database.db, direct: 'nowhere' })
    const error = await store.open().catch((reason: unknown) => reason)
    assert.instanceOf(error, E_INVALID_CONFIG)
    assert.match(String(error), /"nowhere" is not in config\/database\.ts/)
  })
})

test.group('PostgreSQL batch with rows that the database refuses', (group) => {
  let database: PostgresDatabase
  group.each.setup(async () => {
    if (SKIPPED !== null) return () => {}
    database = await PostgresDatabase.create()
    await database.query(`create function refuse() returns trigger language plpgsql as $$
      begin raise exception 'refused by a trigger'; end $$`)
    await database.query(`create trigger refuse before insert on durable_runs for each row
      when (new.id like 'bad%') execute function refuse()`)
    return () => database.remove()
  })
  group.tap((each) => each.skip(SKIPPED !== null, SKIPPED ?? ''))

  test('only the offending run is refused, wherever it stands, by either way of writing', async ({
    assert,
  }) => {
    const store = await database.store()
    for (const at of [0, 3, 6]) {
      for (const isShort of [false, true]) {
        const ids = Array.from({ length: 7 }, (_, index) =>
          index === at ? `bad${at}` : `ok${at}.${index}.${isShort}`
        )
        const timeoutMs = isShort ? { timeoutMs: 1_000 } : {}
        const { answers } = await store.commit(ids.map((id) => start(id, timeoutMs)))
        assert.deepEqual(
          answers.map(({ type }) => type),
          ids.map((id) => (id.startsWith('bad') ? 'refused' : 'started'))
        )
        for (const id of ids)
          assert.equal((await store.getRun(id)) === null, id.startsWith('bad'), id)
      }
    }
  })

  test('later writes of a refused run are refused with it, and nothing of it is left', async ({
    assert,
  }) => {
    const store = await database.store()
    await store.commit([startLeased('r1'), startLeased('r2')])
    const r1 = { id: 'r1', token: 1 }
    await store.commit([turn(r1, { records: [record(0)] })])
    const { answers } = await store.commit([
      turn({ id: 'r2', token: 1 }, { records: [record(0)] }),
      turn(r1, { records: [record(1), record(0)] }),
      turn({ id: 'r2', token: 1 }, { end: COMPLETE }),
      turn(r1, { end: COMPLETE }),
    ])
    assert.deepEqual(
      answers.map(({ type }) => type),
      ['committed', 'refused', 'committed', 'refused']
    )
    const history = await store.getHistory('r1')
    assert.lengthOf(history?.records ?? [], 1)
  })

  test('an error of another kind rejects the whole batch and applies nothing', async ({
    assert,
  }) => {
    const store = await database.store()
    await database.query('alter table durable_payloads rename to elsewhere')
    await assert.rejects(() => store.commit([start('r1'), start('r2')]), /does not exist/)
    const { runs } = await store.listRuns({})
    assert.deepEqual(runs, [])
  })

  test('a batch that was prepared before a migration is written after it', async ({ assert }) => {
    const store = await database.store()
    await store.commit([startLeased('r1')])
    assert.lengthOf(await store.listWorkers(), 0)
    await database.query('alter table durable_workers add column note text')
    await database.query('alter table durable_runs add column note text')
    assert.lengthOf(await store.listWorkers(), 0)
    const { answers } = await store.commit([
      turn({ id: 'r1', token: 1 }, { records: [record(0)], end: COMPLETE }),
      startLeased('r2'),
    ])
    assert.deepEqual(
      answers.map(({ type }) => type),
      ['committed', 'started']
    )
  })
})

test.group('PostgreSQL start in the transaction of a caller', (group) => {
  let database: PostgresDatabase
  let store: LucidStore
  group.each.setup(async () => {
    if (SKIPPED !== null) return () => {}
    database = await PostgresDatabase.create()
    store = await database.store()
    return () => database.remove()
  })
  group.tap((each) => each.skip(SKIPPED !== null, SKIPPED ?? ''))

  test('the run exists once the caller has committed, and others are told of it then', async ({
    assert,
  }) => {
    const other = await database.store()
    const told = Promise.withResolvers<string[]>()
    other.onForeignChange((news) => told.resolve([...(news?.due ?? [])]))
    const run = newRun('r1', { tags: ['blue', 'blue'], input: '{"v":7}' })
    const trx = await database.db.transaction()
    const answer = await store.startWith(trx, { type: 'start', run, leaseTo: null })
    assert.isTrue(answer.created)
    assert.isNull(await store.getRun('r1'))
    await trx.commit()
    assert.deepEqual(await store.getRun('r1'), {
      attributes: {},
      ...answer.run,
      ...{ input: '{"v":7}', output: null, error: null, tags: ['blue'] },
    })
    assert.deepEqual(await told.promise, [run.claimKey])
  })

  test('the run never exists when the caller rolls back', async ({ assert }) => {
    const trx = await database.db.transaction()
    await store.startWith(trx, start('r1'))
    await trx.rollback()
    assert.isNull(await store.getRun('r1'))
  })

  test('the answer is that of a commit: a taken id gives the run that has it', async ({
    assert,
  }) => {
    const { answers } = await store.commit([start('r1', { workflow: 'export' })])
    const [before] = answers
    const trx = await database.db.transaction()
    const answer = await store.startWith(trx, start('r1'))
    await trx.commit()
    assert.isTrue(before?.type === 'started' && before.created)
    assert.deepEqual(answer, { ...before, created: false })
  })
})

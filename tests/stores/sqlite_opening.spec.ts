import { test } from '@japa/runner'
import { E_STORE_BUSY } from '../../src/errors.ts'
import { start } from '../../src/testing/conformance/writes.ts'
import { ForkedProcess } from '../support/forked_process.ts'
import { SqliteDatabase, statusOf } from './sqlite_database.ts'

const PROCESSES = 8

test.group('SQLite while several open it', (group) => {
  let database: SqliteDatabase
  group.each.setup(async () => {
    database = await SqliteDatabase.create()
    return () => database.remove()
  })

  /** Begins a transaction of another connection; nobody has switched the file to a write-ahead log yet. */
  async function holding(begin: string) {
    const holder = database.connection()
    await holder.rawQuery(begin)
    return { letGo: () => holder.rawQuery('rollback') }
  }

  for (const begin of ['begin immediate', 'begin exclusive'])
    test(`a store that is opened beside a connection that has said ${begin} waits for it`, async ({
      assert,
    }) => {
      const holder = await holding(begin)
      const refused = Promise.withResolvers<void>()
      // With it each try begins: the fifth comes after four that were refused.
      let tries = 0
      const trace = (sql: string) => {
        if (sql.includes('pragma_database_list') && ++tries === 5) refused.resolve()
      }
      const opening = database.store({ trace })
      let isOpen = false
      void opening.then(() => (isOpen = true))
      await Promise.race([refused.promise, opening])
      assert.isFalse(isOpen)
      await holder.letGo()
      const store = await opening
      await store.commit([start('r1')])
      assert.equal(await statusOf(store, 'r1'), 'pending')
    })

  test('opening fails after the limit and says why, and succeeds later', async ({ assert }) => {
    const holder = await holding('begin exclusive')
    const error = await database.store({ busyLimitMs: 50 }).catch((reason: unknown) => reason)
    assert.instanceOf(error, E_STORE_BUSY)
    await holder.letGo()
    const store = await database.store()
    await store.commit([start('r1')])
    assert.equal(await statusOf(store, 'r1'), 'pending')
  })

  test('eight processes open a new file at the same moment', async ({ assert, cleanup }) => {
    const script = new URL('./sqlite_opener.ts', import.meta.url)
    const openers: ForkedProcess<string>[] = []
    cleanup(async () => void (await Promise.all(openers.map((opener) => opener.kill()))))
    const said = (some = openers) => Promise.all(some.map((opener) => opener.heard()))
    const fork = () => openers.push(new ForkedProcess(script, [database.file]))
    // The first fills the cache of compiled code for the others.
    fork()
    await said()
    while (openers.length < PROCESSES) fork()
    await said(openers.slice(1))
    for (const opener of openers) opener.tell('open')
    assert.deepEqual(await said(), Array(PROCESSES).fill('opened'))
    for (const opener of openers) opener.tell('close')
    await Promise.all(openers.map((opener) => opener.ended()))
    for (const opener of openers) assert.equal(opener.exitCode, 0, opener.output)
  }).timeout(60_000)
})

import { test } from '@japa/runner'
import { readdir } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { ForkedProcess } from '../support/forked_process.ts'
import { SqliteDatabase } from './sqlite_database.ts'

test.group('SQLite lock on a worker name', (group) => {
  let database: SqliteDatabase
  group.each.setup(async () => {
    database = await SqliteDatabase.create()
    return () => database.remove()
  })

  const holder = (name: string) =>
    new ForkedProcess<'held' | 'refused'>(new URL('./sqlite_name_holder.ts', import.meta.url), [
      database.file,
      name,
    ])

  test('a process killed while holding it frees it', async ({ assert }) => {
    const store = await database.store()
    const other = holder('importer')
    assert.equal(await other.heard(), 'held')
    assert.isNull(await store.lockName('importer'))
    await other.kill()
    const lock = await store.lockName('importer')
    assert.isNotNull(lock)
    await lock?.release()
  })

  test('keeps another process out while it is held, however often that is refused', async ({
    assert,
  }) => {
    const store = await database.store()
    const lock = await store.lockName('importer')
    assert.isNull(await store.lockName('importer'))
    const other = holder('importer')
    assert.equal(await other.heard(), 'refused')
    await other.kill()
    assert.isNull(await store.lockName('importer'))
    await lock?.release()
    await lock?.release()
    assert.isNotNull(await store.lockName('importer'))
  })

  test('is freed when the store is closed', async ({ assert }) => {
    const store = await database.store()
    await store.lockName('importer')
    await store.close()
    const other = await database.store()
    assert.isNotNull(await other.lockName('importer'))
  })

  test('lies beside the database, with a name that is safe as a file name and not shared', async ({
    assert,
  }) => {
    const store = await database.store()
    for (const name of ['host:1', 'host/1', '../host', 'importer', 'x'.repeat(300)])
      assert.isNotNull(await store.lockName(name), name)
    const prefix = `${basename(database.file)}.`
    const files = await readdir(dirname(database.file))
    const locks = files.filter((file) => file.startsWith(prefix) && file.endsWith('.lock'))
    assert.lengthOf(locks, 5)
    assert.include(locks, `${prefix}importer.lock`)
  })

  test('does not stand in the way of writes to the database', async ({ assert }) => {
    const store = await database.store({ busyLimitMs: 0 })
    await store.lockName('importer')
    await store.advanceClock(1)
    assert.isAbove(await store.now(), 0)
  })
})

import type { FileSystem } from '@japa/file-system'
import { test } from '@japa/runner'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import DurableMigration from '../../commands/durable_migration.ts'
import { E_SCHEMA_BEHIND, E_SCHEMA_MISSING } from '../../src/errors.ts'
import { createKit, kernelOf, printed } from '../configure/configured_app.ts'

async function migration(fs: FileSystem) {
  const ace = await kernelOf(fs)
  const command = await ace.create(DurableMigration, [])
  await command.exec()
  return { command, output: printed(ace) }
}

test.group('durable:migration', () => {
  test('publishes the migration that the application lacks, once', async ({ assert, fs }) => {
    await createKit(fs, { lucid: true })
    const first = await migration(fs)
    first.command.assertSucceeded()
    assert.include(first.output, 'node ace migration:run')
    const folder = join(fs.basePath, 'database/migrations')
    const files = await readdir(folder)
    assert.lengthOf(files, 1)
    assert.match(files[0] ?? '', /^\d+_create_durable_tables\.ts$/)
    const text = await fs.contents(`database/migrations/${files[0]}`)
    assert.include(text, 'createDurableTables(this.schema, { version: 1 })')

    const second = await migration(fs)
    second.command.assertSucceeded()
    assert.deepEqual(await readdir(folder), files)
    assert.match(second.output, /SKIPPED.*_create_durable_tables\.ts.*makes the tables of durable/)
  })

  test('knows a migration by what it calls, whatever its name and folder', async ({
    assert,
    fs,
  }) => {
    await createKit(fs, { lucid: true })
    const path = 'database/migrations/infrastructure/1_queue.ts'
    await fs.create(path, 'createDurableTables(this.schema, { version: 1 })')
    await fs.create('database/migrations/2_create_durable_tables.md', 'no migration')
    const { command } = await migration(fs)
    command.assertSucceeded()
    const entries = await readdir(join(fs.basePath, 'database/migrations'))
    assert.sameMembers(entries, ['infrastructure', '2_create_durable_tables.md'])
  })

  test('without Lucid says what to add', async ({ assert, fs }) => {
    await createKit(fs, { lucid: false })
    const { command, output } = await migration(fs)
    command.assertFailed()
    assert.include(output, 'node ace add @adonisjs/lucid')
    assert.isFalse(await fs.exists('database/migrations'))
  })

  test('is what the errors about the tables name', ({ assert }) => {
    const named = `"node ace ${DurableMigration.commandName}"`
    assert.include(new E_SCHEMA_MISSING(['main']).message, named)
    assert.include(new E_SCHEMA_BEHIND(['main', 1, 2]).message, named)
  })
})

import type { BaseCommand } from '@adonisjs/core/ace'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { textOf } from './application_files.ts'

const SOURCE_FILE = /(?<!\.d)\.[jt]s$/

async function migrationsIn(folder: string): Promise<string[]> {
  const files = await readdir(folder, { recursive: true }).catch(() => [])
  return files.filter((name) => SOURCE_FILE.test(name)).toSorted()
}

/** The migration in `folder` that makes the tables, from the folder; undefined when none does. */
async function migrationIn(folder: string): Promise<string | undefined> {
  for (const file of await migrationsIn(folder)) {
    const text = await textOf(join(folder, file))
    if (/\bcreateDurableTables\s*\(/.test(text)) return file
  }
  return undefined
}

/**
 * Publishes the migration that the application lacks. When it has one that makes the tables, under whatever name,
 * nothing is changed, and the command says which it is.
 */
export async function publishMigration(command: BaseCommand, stubsRoot: string): Promise<void> {
  const folder = command.app.migrationsPath()
  const existing = await migrationIn(folder)
  if (existing !== undefined) {
    const path = `${command.app.relativePath(folder)}/${existing}`
    command.logger.action(`create ${path}`).skipped('it makes the tables of durable already')
    return
  }
  const codemods = await command.createCodemods()
  await codemods.makeUsingStub(stubsRoot, 'migration/create_durable_tables.stub', {
    fileName: `${Date.now()}_create_durable_tables.ts`,
  })
}

/** Whether the application makes no table but those of this package. */
export async function makesNoOtherTable(command: BaseCommand): Promise<boolean> {
  const migrations = await migrationsIn(command.app.migrationsPath())
  return migrations.length === 1
}

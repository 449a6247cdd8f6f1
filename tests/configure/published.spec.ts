import { test } from '@japa/runner'
import { execFile } from 'node:child_process'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { KitApp } from '../docs/kit_app.ts'

const STRICT = [
  '--strict',
  '--exactOptionalPropertyTypes',
  '--noUncheckedIndexedAccess',
  '--noImplicitOverride',
]

/** Runs commands of an application; each resolves to what it printed, and rejects with that when it fails. */
function commandsOf({ folder: cwd, environment: env }: KitApp) {
  return (file: string, ...args: string[]): Promise<string> => {
    const { promise, resolve, reject } = Promise.withResolvers<string>()
    execFile(file, args, { cwd, env }, (error, stdout, stderr) => {
      const output = stripVTControlCharacters(stdout + stderr).trim()
      if (error) reject(new Error(`${error.message}\n${output}`))
      else resolve(output)
    })
    return promise
  }
}

test.group('Published files', () => {
  test('compile against the built package, boot, and make the tables on SQLite', async ({
    assert,
    cleanup,
  }) => {
    const app = await KitApp.create()
    cleanup(() => app.remove())
    await app.install()
    const run = commandsOf(app)

    await run('node', 'ace', 'configure', '@adonis-agora/durable')
    await run('node', 'ace', 'make:workflow', 'greeting')
    await run('node', 'ace', 'make:step', 'mail')
    assert.equal(await run('tsc', '--noEmit', ...STRICT), '')

    await assert.rejects(() => run('node', 'ace', 'durable:runs'), /node ace durable:migration/)
    const migrations = join(app.folder, 'database/migrations')
    const published = await readdir(migrations)
    assert.lengthOf(published, 1)
    await run('node', 'ace', 'durable:migration')
    assert.deepEqual(await readdir(migrations), published)
    assert.include(await run('node', 'ace', 'migration:run'), 'create_durable_tables')

    assert.equal(await run('node', 'ace', 'durable:runs'), '[ info ] No runs')
    assert.equal(
      await run('node', 'ace', 'durable:runs', '--json'),
      '{\n  "runs": [],\n  "next": null\n}'
    )
    await run('node', 'ace', 'migration:rollback')
    assert.include(await run('node', 'ace', 'migration:status'), 'pending')
  }).timeout(120_000)
})

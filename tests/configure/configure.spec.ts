import Configure from '@adonisjs/core/commands/configure'
import type { FileSystem } from '@japa/file-system'
import { test } from '@japa/runner'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createKit, kernelOf, printed } from './configured_app.ts'

const entryPoint = new URL('../../index.ts', import.meta.url).href

async function configure(fs: FileSystem, flags: string[] = []) {
  const ace = await kernelOf(fs)
  const command = await ace.create(Configure, [entryPoint, ...flags])
  await command.exec()
  return { command, output: printed(ace) }
}

/** Makes the process one whose input is a terminal, or is none, until the test ends. */
function useTerminal(isTTY: boolean, cleanup: (restore: () => void) => void) {
  const before = Object.getOwnPropertyDescriptor(process.stdin, 'isTTY')
  Object.defineProperty(process.stdin, 'isTTY', { value: isTTY, configurable: true })
  cleanup(() => {
    Reflect.deleteProperty(process.stdin, 'isTTY')
    if (before) Object.defineProperty(process.stdin, 'isTTY', before)
  })
}

/** Path and contents of every file of the application. */
async function contentsOf(fs: FileSystem): Promise<Record<string, string>> {
  const entries = await readdir(fs.basePath, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile())
  const paths = files.map((file) => join(file.parentPath, file.name)).sort()
  return Object.fromEntries(
    await Promise.all(paths.map(async (path) => [path, await readFile(path, 'utf8')] as const))
  )
}

test.group('configure', () => {
  test('sets up everything that a first workflow needs', async ({ assert, fs }) => {
    await createKit(fs, { lucid: true })
    const { command, output } = await configure(fs)
    command.assertSucceeded()

    const rcFile = await fs.contents('adonisrc.ts')
    assert.include(rcFile, `() => import('@adonis-agora/durable/durable_provider')`)
    assert.include(rcFile, `() => import('@adonis-agora/durable/commands')`)
    assert.include(rcFile, `() => import('#start/durable')`)

    assert.include(await fs.contents('config/durable.ts'), 'export default durableConfig')
    const listeners = await fs.contents('start/durable.ts')
    assert.include(listeners, 'engine.onDead(')
    assert.notInclude(listeners, 'logger')
    const migrations = await readdir(join(fs.basePath, 'database/migrations'))
    assert.lengthOf(migrations, 1)
    assert.match(migrations[0] ?? '', /^\d+_create_durable_tables\.ts$/)
    assert.include(
      await fs.contents(`database/migrations/${migrations[0]}`),
      'createDurableTables(this.schema, { version: 1 })'
    )

    assert.equal(await fs.contents('.env'), 'PORT=3333\nDURABLE_STORE=lucid\n')
    assert.equal(await fs.contents('.env.example'), 'PORT=\nDURABLE_STORE=lucid\n')
    assert.equal(await fs.contents('.env.test'), 'DURABLE_STORE=memory\n')
    assert.match(
      await fs.contents('start/env.ts'),
      /DURABLE_STORE: Env\.schema\.enum\.optional\(\['lucid', 'memory'\] as const\)/
    )
    const { imports, hotHook } = await fs.contentsJson('package.json')
    assert.property(imports, '#workflows/*')
    assert.property(imports, '#steps/*')
    assert.include(hotHook.boundaries, './app/workflows/**/*.ts')

    assert.include(output, 'write-ahead logging')
    assert.include(output, 'schemaGeneration: { enabled: false }')
    assert.match(
      output,
      /Next: "node ace migration:run", "node ace make:workflow \w+", "npm run dev"$/
    )
  })

  test('says nothing of generated models where the application has tables of its own', async ({
    assert,
    fs,
  }) => {
    await createKit(fs, { lucid: true })
    await fs.create('database/migrations/1_create_users_table.ts', 'export default class {}\n')
    const { output } = await configure(fs)
    assert.notInclude(output, 'schemaGeneration')
  })

  test('changes nothing the second time, also where the application has changed values', async ({
    assert,
    fs,
  }) => {
    await createKit(fs, { lucid: true })
    await configure(fs)
    await fs.create('.env', 'DURABLE_STORE=memory\n')
    const before = await contentsOf(fs)
    const { command } = await configure(fs)
    command.assertSucceeded()
    assert.deepEqual(await contentsOf(fs), before)
  })

  test('without Lucid and without a terminal says what to add and which flag there is, and asks nothing', async ({
    assert,
    fs,
    cleanup,
  }) => {
    useTerminal(false, cleanup)
    await createKit(fs, { lucid: false })
    const before = await contentsOf(fs)
    const { command, output } = await configure(fs)
    command.assertFailed()
    assert.include(output, 'node ace add @adonisjs/lucid')
    assert.include(output, '--store=memory')
    assert.deepEqual(await contentsOf(fs), before)

    const flagged = await configure(fs, ['--store=memory'])
    flagged.command.assertSucceeded()
    assert.include(await fs.contents('.env'), 'DURABLE_STORE=memory')
  })

  test('without Lucid says what to add, and stops when the memory store is declined', async ({
    assert,
    fs,
    cleanup,
  }) => {
    useTerminal(true, cleanup)
    await createKit(fs, { lucid: false })
    const before = await contentsOf(fs)
    const ace = await kernelOf(fs)
    const command = await ace.create(Configure, [entryPoint])
    command.prompt.trap('memory_store').reject()
    await command.exec()
    command.assertFailed()
    assert.include(printed(ace), 'node ace add @adonisjs/lucid')
    assert.deepEqual(await contentsOf(fs), before)
  })

  test('without Lucid sets up the memory store when it is accepted', async ({
    assert,
    fs,
    cleanup,
  }) => {
    useTerminal(true, cleanup)
    await createKit(fs, { lucid: false })
    const ace = await kernelOf(fs)
    const command = await ace.create(Configure, [entryPoint])
    command.prompt.trap('memory_store').accept()
    await command.exec()
    command.assertSucceeded()
    assert.include(await fs.contents('.env'), 'DURABLE_STORE=memory')
    assert.isFalse(await fs.exists('database/migrations'))
    assert.notInclude(printed(ace), 'migration:run')
  })

  test('refuses a store that does not exist', async ({ assert, fs }) => {
    await createKit(fs, { lucid: true })
    const before = await contentsOf(fs)
    const { command, output } = await configure(fs, ['--store=redis'])
    command.assertFailed()
    assert.include(output, '--store must be lucid or memory, not "redis"')
    assert.deepEqual(await contentsOf(fs), before)
  })
})

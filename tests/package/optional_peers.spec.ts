import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { test } from '@japa/runner'

const root = new URL('../../', import.meta.url)
const hook = new URL('./missing_packages.ts', import.meta.url)
const drivers = ['better-sqlite3', 'ioredis', 'knex', 'mysql2', 'pg']

async function optionalPeers(): Promise<string[]> {
  const manifest = JSON.parse(await readFile(new URL('package.json', root), 'utf8')) as {
    peerDependenciesMeta: Record<string, { optional: boolean }>
  }
  return Object.entries(manifest.peerDependenciesMeta)
    .filter(([, meta]) => meta.optional)
    .map(([name]) => name)
}

/** Imports modules in a process of their own, in which the named packages are not installed. */
function importWithout(missing: string[], specifiers: string[]) {
  const source = specifiers.map((specifier) => `await import(${JSON.stringify(specifier)})`)
  const program = [...source, `console.log('imported')`].join('\n')
  return promisify(execFile)(
    process.execPath,
    ['--import', hook.href, '--input-type=module', '--eval', program],
    {
      cwd: fileURLToPath(root),
      env: { ...process.env, MISSING_PACKAGES: missing.join(',') },
    }
  )
}

test.group('Optional peers', () => {
  test('the entry points load when no optional peer and no driver is installed', async ({
    assert,
  }) => {
    const missing = [...(await optionalPeers()), ...drivers]
    const { stdout } = await importWithout(missing, [
      '@adonis-agora/durable',
      '@adonis-agora/durable/types',
      '@adonis-agora/durable/commands',
      '@adonis-agora/durable/durable_provider',
    ])
    assert.equal(stdout.trim(), 'imported')
  })

  test('an import of {package} is refused in such a process')
    .with(async () => {
      const names = await optionalPeers()
      return names.map((name) => ({ package: name }))
    })
    .run(async ({ assert }, peer) => {
      const missing = [peer.package]
      await assert.rejects(
        () => importWithout(missing, [`${peer.package}/package.json`]),
        /is not installed in this process/
      )
    })
})

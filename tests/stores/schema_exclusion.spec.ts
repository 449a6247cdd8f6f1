import { test } from '@japa/runner'
import { tableNames } from '../../src/stores/lucid/schema.ts'
import { excludeFromSchemaGeneration } from '../../src/stores/lucid/schema_exclusion.ts'

test.group('Schema exclusion', () => {
  test('adds the tables to what each connection excludes, once', ({ assert }) => {
    const config = {
      connection: 'main',
      connections: {
        main: { client: 'better-sqlite3' },
        other: { client: 'pg', schemaGeneration: { enabled: true, excludeTables: ['audits'] } },
      },
    }
    excludeFromSchemaGeneration(config)
    excludeFromSchemaGeneration(config)
    assert.isAbove(tableNames().length, 0)
    assert.deepEqual(config.connections, {
      main: { client: 'better-sqlite3', schemaGeneration: { excludeTables: tableNames() } },
      other: {
        client: 'pg',
        schemaGeneration: { enabled: true, excludeTables: ['audits', ...tableNames()] },
      },
    } as object as typeof config.connections)
  })

  test('leaves alone what is no configuration of Lucid', ({ assert }) => {
    for (const config of [
      null,
      undefined,
      'x',
      {},
      { connections: 4 },
      { connections: { a: 1 } },
    ]) {
      const before = structuredClone(config)
      excludeFromSchemaGeneration(config)
      assert.deepEqual(config, before)
    }
  })
})

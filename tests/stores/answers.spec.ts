import { test } from '@japa/runner'
import { E_INVALID_CONFIG } from '../../src/errors.ts'
import { applySplit } from '../../src/stores/lucid/split.ts'
import { createDurableTables, type SchemaVersion } from '../../src/stores/lucid/schema.ts'
import { start } from '../../src/testing/conformance/writes.ts'

test.group('What a store expects to be there', () => {
  test('an answer to no write is an error that says so', ({ assert }) => {
    const news = { due: new Set<string>(), dueIn: null, inbox: new Set<string>() }
    const flush = { ...news, revoked: new Map<string, number>(), ended: new Set<string>() }
    const woken = { type: 'woken', done: true } as const
    assert.throws(
      () => applySplit([start('r1')], () => ({ flush: { answers: [woken, woken], news: flush } })),
      /the write of an answer is missing/
    )
  })

  test('a migration of a version that there is not is refused', ({ assert }) => {
    const schema = { raw: () => {}, client: { driverName: 'pg' } }
    const version: number = 2
    assert.throws(
      () => createDurableTables(schema, { version: version as SchemaVersion }),
      E_INVALID_CONFIG
    )
  })
})

import { test } from '@japa/runner'
import type pg from 'pg'
import { PostgresConnection } from '../../src/stores/lucid/postgres/connection.ts'
import type { PostgresDatabase } from './postgres_database.ts'
import { usePostgres } from './postgres_group.ts'

const READ_ONLY = Object.assign(new Error('the server is read-only'), { code: '25006' })
const GONE = Object.assign(new Error('gone'), { code: 'ECONNRESET' })

test.group('PostgreSQL connections that cannot be set up', (group) => {
  let database: PostgresDatabase

  usePostgres(group, async (created) => {
    database = created
  })

  /** The first client is broken before it is set up. */
  function connection(params: { breakFirst?: (client: pg.Client) => void; lockMs?: number }) {
    const ended = Promise.withResolvers<void>()
    let opened = 0
    const made = new PostgresConnection({
      openHandle: async () => {
        const client = await database.client()
        if (opened++ === 0) {
          client.once('end', () => ended.resolve())
          params.breakFirst?.(client)
        }
        return client
      },
      trace: undefined,
      lockMs: params.lockMs,
    })
    return { made, ended: ended.promise }
  }

  const failures: Record<string, { breakFirst: (client: pg.Client) => void; error: Error }> = {
    'is lost': {
      breakFirst: (client) => void client.connection.stream.destroy(GONE),
      error: GONE,
    },
    'is refused for now': {
      breakFirst: (client) => Object.assign(client, { query: () => Promise.reject(READ_ONLY) }),
      error: READ_ONLY,
    },
  }
  for (const [title, { breakFirst, error }] of Object.entries(failures)) {
    test(`one that ${title} while it is set up is told with its error, and the next use opens another`, async ({
      assert,
      cleanup,
    }) => {
      const { made, ended } = connection({ breakFirst })
      cleanup(() => made.close({ forGood: true }))
      assert.equal(await made.session().catch((reason: unknown) => reason), error)
      await ended
      const session = await made.session()
      assert.isTrue(session.isOpen)
    })
  }

  test('one whose settings the server refuses is closed', async ({ assert }) => {
    const { made, ended } = connection({ lockMs: -5 })
    await assert.rejects(() => made.session(), /lock_timeout/)
    await ended
  })
})

import { test } from '@japa/runner'
import type pg from 'pg'
import { PostgresConnection } from '../../src/stores/lucid/postgres/connection.ts'
import { until } from '../support/until.ts'
import type { PostgresDatabase } from './postgres_database.ts'
import { usePostgres } from './postgres_group.ts'

const READ_ONLY = Object.assign(new Error('the server is read-only'), { code: '25006' })
const GONE = Object.assign(new Error('gone'), { code: 'ECONNRESET' })

test.group('PostgreSQL connections that are lost early', (group) => {
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

  test('a lost session is ended on the server, though the one that was to end it is lost too', async ({
    assert,
    cleanup,
  }) => {
    let opened = 0
    const made = new PostgresConnection({
      openHandle: async () => {
        const client = await database.client()
        if (opened++ !== 1) return client
        const query = client.query.bind(client) as (query: pg.QueryConfig) => Promise<unknown>
        return Object.assign(client, {
          query: (asked: pg.QueryConfig) => {
            if (asked.text.includes('pg_terminate')) client.connection.stream.destroy(GONE)
            return query(asked)
          },
        })
      },
      trace: undefined,
    })
    cleanup(() => made.close({ forGood: true }))
    const first = await made.session()
    const slow = first.run([{ sql: 'select pg_sleep(9)', values: [] }]).catch(() => undefined)
    await untilAsleep()
    first.drop(GONE)
    await slow
    await assert.rejects(() => made.session())
    await made.session()
    assert.deepEqual(await asleep(), [])
  })

  const asleep = () =>
    database.query(
      `select pid from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'`
    )

  async function untilAsleep(): Promise<void> {
    await until(async () => {
      const pids = await asleep()
      return pids.length === 1
    })
  }
})

import { test } from '@japa/runner'
import { storeConformance, type StoreUnderTest } from '../../src/testing/store_conformance.ts'
import { PostgresDatabase } from './postgres_database.ts'
import { SKIPPED } from './postgres_server.ts'

let database: PostgresDatabase | undefined

async function create(): Promise<StoreUnderTest> {
  database ??= await PostgresDatabase.create()
  const shared = database
  const run = async (sql: string, values: (string | number)[]) => {
    await shared.db.rawQuery(sql, values)
  }
  return {
    store: await shared.store(),
    another: () => shared.store(),
    corrupt: {
      dropWait: (runId, seq) =>
        run('delete from durable_waits where run_id = ? and seq = ?', [runId, seq]),
      dropRun: async (runId) => {
        await run('delete from durable_runs where id = ?', [runId])
        for (const table of ['payloads', 'history', 'waits', 'inbox', 'tags'])
          await run(`delete from durable_${table} where run_id = ?`, [runId])
      },
      dropInbox: (runId) => run('delete from durable_inbox where run_id = ?', [runId]),
      forgetDue: (runId) => run('update durable_runs set due_at = null where id = ?', [runId]),
      forgetOwner: (runId) => run(`update durable_runs set owner = 'nobody' where id = ?`, [runId]),
      setFormat: (runId, format) =>
        run('update durable_runs set format = ? where id = ?', [format, runId]),
    },
    close: () => shared.clear(),
  }
}

storeConformance({
  group: (title, define) =>
    test.group(`LucidStore on PostgreSQL: ${title}`, (group) => {
      group.teardown(async () => {
        await database?.remove()
        database = undefined
      })
      define()
    }),
  test: (title, run) => test(title, run).skip(SKIPPED !== null, SKIPPED ?? ''),
  create,
})

import { test } from '@japa/runner'
import { storeConformance, type StoreUnderTest } from '../../src/testing/store_conformance.ts'
import { SqliteDatabase } from './sqlite_database.ts'

async function create(): Promise<StoreUnderTest> {
  const database = await SqliteDatabase.create()
  const run = async (sql: string, values: (string | number)[]) => {
    await database.db.rawQuery(sql, values)
  }
  return {
    store: await database.store(),
    another: () => database.store(),
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
    close: () => database.remove(),
  }
}

storeConformance({
  group: (title, define) => test.group(`LucidStore on SQLite: ${title}`, define),
  test: (title, run) => test(title, run),
  create,
})

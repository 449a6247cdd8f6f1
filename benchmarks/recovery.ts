import { DurableApp } from '../tests/support/durable_app.ts'
import { SqliteDatabase } from '../tests/stores/sqlite_database.ts'
import { tallyOf } from './engine_databases.ts'
import { killInTheMiddle, WORKER_NAME } from './killed_process.ts'
import { expectTally } from './measured.ts'
import { registerTenSteps, STEPS } from './ten_steps.ts'

/**
 * Seconds from the start of a worker until it has ended the runs that were killed in their middle step. Rejects unless
 * each of them is then completed, with each of its steps.
 */
export async function measureRecovery(runs: number): Promise<number> {
  const database = await SqliteDatabase.create()
  await killInTheMiddle({ file: database.file, runs })
  const app = new DurableApp({ store: await database.store() })
  registerTenSteps(app.engine, async () => {})
  const ended = Promise.withResolvers<void>()
  let left = runs
  app.engine.on('run.completed', () => {
    if (--left === 0) ended.resolve()
  })
  const begin = performance.now()
  await app.work({ name: WORKER_NAME })
  await ended.promise
  const seconds = (performance.now() - begin) / 1000
  await app.close()
  expectTally(await tallyOf(database.db), { runs, completed: runs, records: runs * STEPS })
  await database.remove()
  return seconds
}

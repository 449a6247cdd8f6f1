import type { ApplicationService } from '@adonisjs/core/types'
import type {} from '@adonisjs/lucid/database_provider'
import { test } from '@japa/runner'
import type { TestContext } from '@japa/runner/core'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { BaseWorkflow } from '../../src/base_workflow.ts'
import { stores } from '../../src/define_config.ts'
import { createDurableTables } from '../../src/stores/lucid/schema.ts'
import type { WorkflowCtx } from '../../src/types/context.ts'
import { adonisApp } from '../support/adonis_app.ts'

class Sum extends BaseWorkflow {
  static override workflow = { name: 'lucid_app.sum' }
  async run(ctx: WorkflowCtx, [a, b]: [number, number]) {
    return ctx.localStep('add', () => a + b)
  }
}

/** An application whose default connection is a SQLite file that does not exist yet. */
async function lucidApp(
  { fs, cleanup }: Pick<TestContext, 'fs' | 'cleanup'>,
  params: { embedded: boolean; connection?: string; direct?: string }
): Promise<{ app: ApplicationService; filename: string }> {
  await fs.mkdir('database')
  const filename = join(fs.basePath, 'database/app.sqlite3')
  const { embedded, ...connections } = params
  const main = { client: 'better-sqlite3', connection: { filename }, useNullAsDefault: true }
  const app = await adonisApp(fs.basePath, {
    environment: 'web',
    durable: { store: stores.lucid(connections), worker: { embedded } },
    providers: [() => import('@adonisjs/lucid/database_provider')],
    config: {
      database: { connection: 'main', connections: { main } },
      logger: { default: 'app', loggers: { app: { enabled: false } } },
    },
  })
  cleanup(() => app.terminate())
  return { app, filename }
}

async function migrate(app: ApplicationService): Promise<void> {
  const db = await app.container.make('lucid.db')
  const { schema } = db.connection()
  createDurableTables(schema, { version: 1 })
  await schema
}

test.group('Application on Lucid', () => {
  test('booting, building the engine and ending touch no database', async ({
    assert,
    fs,
    cleanup,
  }) => {
    const { app, filename } = await lucidApp({ fs, cleanup }, { embedded: false })
    await app.start(() => {})
    await app.container.make('durable')
    await app.terminate()
    assert.isFalse(existsSync(filename))
  })

  test('without tables the first use says what to run', async ({ assert, fs, cleanup }) => {
    const { app } = await lucidApp({ fs, cleanup }, { embedded: false })
    await app.start(() => {})
    await assert.rejects(() => Sum.dispatch([1, 2]), /missing on connection "main".*migration:run/)
  })

  test('an embedded worker executes runs in the database', async ({ assert, fs, cleanup }) => {
    const { app } = await lucidApp({ fs, cleanup }, { embedded: true })
    await migrate(app)
    await app.start(() => {})
    assert.equal(await Sum.start([20, 22], { runId: 'sum' }), 42)
    const engine = await app.container.make('durable')
    assert.deepEqual(await engine.findStranded(), [])
    await app.terminate()
  })

  test('an embedded worker that found no tables starts when there are some', async ({
    assert,
    fs,
    cleanup,
  }) => {
    const { app } = await lucidApp({ fs, cleanup }, { embedded: true })
    const logger = await app.container.make('logger')
    const errors: unknown[][] = []
    logger.error = (...args: unknown[]) => void errors.push(args)
    await app.start(() => {})
    assert.match(String(errors[0]?.[1]), /could not start.*Trying again/)
    await migrate(app)
    assert.equal(await Sum.start([20, 22]), 42)
    await app.terminate()
  })

  test('a run started in a transaction exists only if it commits', async ({
    assert,
    fs,
    cleanup,
  }) => {
    const { app } = await lucidApp({ fs, cleanup }, { embedded: false })
    await migrate(app)
    await app.start(() => {})
    const db = await app.container.make('lucid.db')
    const engine = await app.container.make('durable')
    const lost = await db.transaction()
    await Sum.dispatch([1, 2], { runId: 'lost', client: lost })
    await lost.rollback()
    await db.transaction((trx) => Sum.dispatch([1, 2], { runId: 'kept', client: trx }))
    assert.isNull(await engine.getRun('lost'))
    const kept = await engine.getRun('kept')
    assert.equal(kept?.status, 'pending')
  })

  test('a query of a body blocks its run, though SQLite answers before the window closes; one of a step does not', async ({
    assert,
    fs,
    cleanup,
  }) => {
    const { app } = await lucidApp({ fs, cleanup }, { embedded: true })
    await migrate(app)
    await app.start(() => {})
    const db = await app.container.make('lucid.db')
    const engine = await app.container.make('durable')
    const count = () => db.from('durable_runs').count('* as runs')
    const calls: string[] = []
    const blocked = Promise.withResolvers<string>()
    engine.on('run.blocked', ({ error }) => blocked.resolve(`${error.code}: ${error.message}`))
    engine.register('impatient', '1', async (ctx) => {
      await ctx.localStep('count', () =>
        count().then(({ length }) => void calls.push(`${length} row`))
      )
      await count()
      await ctx.localStep('never', () => void calls.push('never'))
    })
    await engine.start('impatient', null, 'one')
    assert.match(await blocked.promise, /^foreign_await: .*sent a query.*count\(\*\)/)
    assert.deepEqual(calls, ['1 row'])
  })

  test('queries of a connection are listened to once, however often it is announced, and no longer than the application runs', async ({
    assert,
    fs,
    cleanup,
  }) => {
    const { app } = await lucidApp({ fs, cleanup }, { embedded: false })
    await app.start(() => {})
    const db = await app.container.make('lucid.db')
    const emitter = await app.container.make('emitter')
    await db.rawQuery('select 1')
    const connection = db.manager.get('main')!.connection!
    const client = connection.client!
    const queries = client.listenerCount('query')
    const connections = emitter.listenerCount('db:connection:connect')
    await app.container.make('durable')
    await emitter.emit('db:connection:connect', connection)
    assert.equal(client.listenerCount('query'), queries + 1)
    assert.equal(emitter.listenerCount('db:connection:connect'), connections + 1)
    await app.terminate()
    assert.equal(client.listenerCount('query'), queries)
    assert.equal(emitter.listenerCount('db:connection:connect'), connections)
  })

  test('a connection that does not exist is named at the first use', async ({
    assert,
    fs,
    cleanup,
  }) => {
    for (const option of ['connection', 'direct']) {
      const { app } = await lucidApp({ fs, cleanup }, { embedded: false, [option]: 'archive' })
      await app.start(() => {})
      const engine = await app.container.make('durable')
      await assert.rejects(
        () => engine.listRuns(),
        /"store".*got the connection "archive", expected one of config\/database\.ts/
      )
    }
  })
})

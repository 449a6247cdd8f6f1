import type { ApplicationService } from '@adonisjs/core/types'
import type {} from '@adonisjs/lucid/database_provider'
import type { Database } from '@adonisjs/lucid/database'
import type { QueryClientContract } from '@adonisjs/lucid/types/database'
import { test } from '@japa/runner'
import { join } from 'node:path'
import { MemoryStore } from '../../src/stores/memory/memory_store.ts'
import type { WorkflowCtx } from '../../src/types/context.ts'
import { SERVER, SKIPPED } from '../stores/postgres_server.ts'
import { adonisApp } from '../support/adonis_app.ts'

const postgres = { ...SERVER, database: 'postgres' }

/** Connections of applications, by what they are to. */
const CONNECTIONS: Record<string, (basePath: string) => object> = {
  'SQLite': (basePath) => ({
    client: 'better-sqlite3',
    connection: { filename: join(basePath, 'app.sqlite3') },
    useNullAsDefault: true,
  }),
  'PostgreSQL': () => ({ client: 'pg', connection: postgres }),
  'PostgreSQL with a replica': () => ({
    client: 'pg',
    connection: postgres,
    replicas: {
      write: { connection: postgres },
      read: { connection: [postgres] },
    },
  }),
}

/** What a body does before it goes on with a step, made before the application starts. */
const QUERIES: Record<
  string,
  (db: Database, cleanup: (end: () => Promise<void>) => void) => Promise<() => unknown>
> = {
  'that is awaited': async (db) => () => one(db.connection()),
  'that is not awaited': async (db) => () => void one(db.connection()).exec(),
  'in a transaction of its own': async (db) => () => db.transaction((trx) => one(trx)),
  'in a transaction that was begun before the engine was made': async (db, cleanup) => {
    const trx = await db.transaction()
    cleanup(() => trx.rollback())
    return () => void one(trx).exec()
  },
}

function one(client: QueryClientContract) {
  return client.query().select(client.raw('1 as one'))
}

for (const [kind, connectionIn] of Object.entries(CONNECTIONS)) {
  test.group(`Queries of a body | ${kind}`, (group) => {
    if (SKIPPED !== null && kind !== 'SQLite') group.each.skip(true, SKIPPED)

    async function applicationIn(basePath: string): Promise<ApplicationService> {
      return adonisApp(basePath, {
        environment: 'web',
        store: new MemoryStore(),
        durable: { worker: { embedded: true } },
        providers: [() => import('@adonisjs/lucid/database_provider')],
        config: {
          database: { connection: 'main', connections: { main: connectionIn(basePath) } },
          logger: { default: 'app', loggers: { app: { enabled: false } } },
        },
      })
    }

    for (const [which, made] of Object.entries(QUERIES))
      test(`one ${which} blocks the run`, async ({ assert, fs, cleanup }) => {
        await fs.mkdir('.')
        const app = await applicationIn(fs.basePath)
        cleanup(() => app.terminate())
        const query = await made(await app.container.make('lucid.db'), cleanup)
        await app.start(() => {})

        const engine = await app.container.make('durable')
        const blocked = Promise.withResolvers<string>()
        engine.on('run.blocked', ({ error }) => blocked.resolve(`${error.code}: ${error.message}`))
        engine.register('impatient', '1', async (ctx: WorkflowCtx) => {
          await query()
          // The body is still there when the query is sent, however long that takes.
          await ctx.localStep('held', () => blocked.promise)
        })
        await engine.start('impatient', null, 'one')
        assert.match(
          await blocked.promise,
          /^foreign_await: The body sent a query to the database by itself/
        )
      })
  })
}

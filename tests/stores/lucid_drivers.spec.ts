import { Emitter } from '@adonisjs/core/events'
import { AppFactory } from '@adonisjs/core/factories/app'
import { LoggerFactory } from '@adonisjs/core/factories/logger'
import { Database } from '@adonisjs/lucid/database'
import { test } from '@japa/runner'
import { LucidStore } from '../../src/stores/lucid/lucid_store.ts'

test.group('Drivers of Lucid', () => {
  test('a connection that no dialect is made for is told every driver that there is one for', async ({
    assert,
    cleanup,
  }) => {
    const app = new AppFactory().create(new URL('./', import.meta.url), () => {})
    const connections = { main: { client: 'mysql2' as const, connection: { host: '127.0.0.1' } } }
    const db = new Database(
      { connection: 'main', connections },
      new LoggerFactory().create(),
      new Emitter(app)
    )
    cleanup(() => db.manager.closeAll())
    await assert.rejects(
      () => new LucidStore({ db }).open(),
      'Invalid option "store" in config/durable.ts: the database connection "main" uses "mysql2", and durable needs ' +
        '"better-sqlite3" (SQLite) or "pg" (PostgreSQL)'
    )
  })
})

import type { Database } from '@adonisjs/lucid/database'
import type { EngineStore } from '../src/engine/engine_context.ts'
import { LucidStore } from '../src/stores/lucid/lucid_store.ts'
import { createDurableTables } from '../src/stores/lucid/schema.ts'
import { MemoryDatabase } from '../src/stores/memory/memory_database.ts'
import { MemoryStore } from '../src/stores/memory/memory_store.ts'
import { connectTo, type PostgresServer } from '../tests/stores/postgres_server.ts'
import { SqliteDatabase } from '../tests/stores/sqlite_database.ts'
import type { Tally } from './subject.ts'

/** A database without runs, with the tables of the engine. */
export interface EngineDatabase {
  /** The only one that is opened on it. */
  store: EngineStore
  tally(): Promise<Tally>
  /** Called once the store is closed. */
  remove(): Promise<void>
}

/** A database of PostgreSQL by name. */
export interface PostgresPlace {
  server: PostgresServer
  database: string
}

export async function inMemory(): Promise<EngineDatabase> {
  const database = new MemoryDatabase()
  return {
    store: new MemoryStore(database),
    async tally() {
      const runs = [...database.runs.rows()]
      return {
        runs: runs.length,
        completed: runs.filter(({ status }) => status === 'completed').length,
        records: runs.reduce((sum, { id }) => sum + database.history.all(id).length, 0),
      }
    },
    remove: async () => {},
  }
}

export async function onSqlite(): Promise<EngineDatabase> {
  const database = await SqliteDatabase.create()
  return {
    store: new LucidStore({ db: database.db }),
    tally: () => tallyOf(database.db),
    remove: () => database.remove(),
  }
}

/** The database is there, and empty; it stays. */
export function onPostgres({ server, database }: PostgresPlace) {
  return async (): Promise<EngineDatabase> => {
    const db = connectTo(database, server)
    const { schema } = db.connection()
    createDurableTables(schema, { version: 1 })
    await schema
    return {
      store: new LucidStore({ db }),
      tally: () => tallyOf(db),
      remove: () => db.manager.closeAll(),
    }
  }
}

/** What the tables of the engine hold. */
export async function tallyOf(db: Database): Promise<Tally> {
  const rowsOf = async (table: string, where: Record<string, string> = {}) => {
    const [row] = await db.from(table).where(where).count('* as total')
    return Number(row?.total)
  }
  return {
    runs: await rowsOf('durable_runs'),
    completed: await rowsOf('durable_runs', { status: 'completed' }),
    records: await rowsOf('durable_history'),
  }
}

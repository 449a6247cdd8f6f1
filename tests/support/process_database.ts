import type { Database } from '@adonisjs/lucid/database'
import { LucidStore } from '../../src/stores/lucid/lucid_store.ts'
import { PostgresDatabase } from '../stores/postgres_database.ts'
import { connectTo as connectToPostgres } from '../stores/postgres_server.ts'
import { connectTo as connectToSqlite, SqliteDatabase } from '../stores/sqlite_database.ts'

/** Where a process finds its database. */
export type DatabaseAddress =
  { kind: 'SQLite'; file: string } | { kind: 'PostgreSQL'; name: string }

/** A database that several processes are on. */
export interface ProcessDatabase {
  address: DatabaseAddress
  store(): Promise<LucidStore>
  remove(): Promise<void>
}

export async function createDatabase(kind: DatabaseAddress['kind']): Promise<ProcessDatabase> {
  switch (kind) {
    case 'SQLite': {
      const database = await SqliteDatabase.create()
      const address = { kind, file: database.file }
      return { address, store: () => database.store(), remove: () => database.remove() }
    }
    case 'PostgreSQL': {
      const database = await PostgresDatabase.create()
      const address = { kind, name: database.name }
      return { address, store: () => database.store(), remove: () => database.remove() }
    }
  }
}

/** Lucid of a process of its own. */
export function connect(address: DatabaseAddress): { db: Database; store: LucidStore } {
  const db =
    address.kind === 'SQLite' ? connectToSqlite(address.file) : connectToPostgres(address.name)
  return { db, store: new LucidStore({ db }) }
}

import { copyFile, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type pg from 'pg'
import type { LucidStore } from '../../src/stores/lucid/lucid_store.ts'
import { tableNames } from '../../src/stores/lucid/schema.ts'
import { connect, type DatabaseAddress } from '../support/process_database.ts'
import { PostgresDatabase } from '../stores/postgres_database.ts'
import { untilSessions } from '../stores/postgres_gate.ts'
import { SqliteDatabase } from '../stores/sqlite_database.ts'

/** Brings a database into the state in which a scenario begins. */
export type Preparation = (store: LucidStore) => Promise<void>

/** A database on which one scenario is played over and over, each time from its beginning. */
export interface CrashDatabase {
  /** Where the scenario begins is what `preparation` makes of empty tables. */
  prepare(preparation: Preparation): Promise<void>
  /** Back to the beginning; nothing may be at work on it. */
  begin(): Promise<DatabaseAddress>
  /** Resolves when everything that processes have sent before they were killed has been done. */
  quiet(): Promise<void>
  remove(): Promise<void>
}

export function createCrashDatabase(kind: DatabaseAddress['kind']): Promise<CrashDatabase> {
  switch (kind) {
    case 'SQLite':
      return SqliteFiles.create()
    case 'PostgreSQL':
      return PostgresTables.create()
  }
}

/** Opens the store that is at an address, for as long as `work` takes. */
export async function withStore<T>(
  address: DatabaseAddress,
  work: (store: LucidStore) => Promise<T>
): Promise<T> {
  const { db, store } = connect(address)
  await store.open()
  try {
    return await work(store)
  } finally {
    await store.close()
    await db.manager.closeAll()
  }
}

/** A new copy of one file for each beginning. */
class SqliteFiles implements CrashDatabase {
  #directory: string
  #template: SqliteDatabase
  #count = 0

  private constructor(directory: string, template: SqliteDatabase) {
    this.#directory = directory
    this.#template = template
  }

  static async create(): Promise<SqliteFiles> {
    const directory = await mkdtemp(join(tmpdir(), 'durable-crash-'))
    return new SqliteFiles(directory, await SqliteDatabase.create())
  }

  async prepare(preparation: Preparation): Promise<void> {
    await this.#template.remove()
    this.#template = await SqliteDatabase.create()
    await withStore({ kind: 'SQLite', file: this.#template.file }, preparation)
    await this.#template.db.rawQuery('pragma wal_checkpoint(truncate)')
  }

  async begin(): Promise<DatabaseAddress> {
    const file = join(this.#directory, `${this.#count++}.sqlite3`)
    await copyFile(this.#template.file, file)
    return { kind: 'SQLite', file }
  }

  /** A process writes to the file itself: with it ends what it does. */
  async quiet(): Promise<void> {}

  async remove(): Promise<void> {
    await this.#template.remove()
    await rm(this.#directory, { recursive: true })
  }
}

/** The same tables for each beginning, filled from copies of themselves. */
class PostgresTables implements CrashDatabase {
  #database: PostgresDatabase
  #client: pg.Client

  private constructor(database: PostgresDatabase, client: pg.Client) {
    this.#database = database
    this.#client = client
  }

  static async create(): Promise<PostgresTables> {
    const database = await PostgresDatabase.create()
    return new PostgresTables(database, await database.client())
  }

  async prepare(preparation: Preparation): Promise<void> {
    await this.#client.query(`drop schema if exists beginning cascade; create schema beginning`)
    await this.#client.query(
      tableNames()
        .map((table) => `delete from ${table}`)
        .join('; ')
    )
    await withStore(this.#address, preparation)
    const copies = tableNames().map((table) => `create table beginning.${table} as table ${table}`)
    await this.#client.query(copies.join('; '))
  }

  async begin(): Promise<DatabaseAddress> {
    await this.quiet()
    const fills = tableNames().map(
      (table) =>
        `delete from ${table}; insert into ${table} overriding system value table beginning.${table}`
    )
    await this.#client.query(fills.join('; '))
    return this.#address
  }

  /** A statement that was sent is executed by the server, though nobody hears the answer. */
  quiet(): Promise<void> {
    return untilSessions(this.#database, 0)
  }

  remove(): Promise<void> {
    return this.#database.remove()
  }

  get #address(): DatabaseAddress {
    return { kind: 'PostgreSQL', name: this.#database.name }
  }
}

import type { Database } from '@adonisjs/lucid/database'
import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { LucidStore, type LucidStoreOptions } from '../../src/stores/lucid/lucid_store.ts'
import { createDurableTables, tableNames } from '../../src/stores/lucid/schema.ts'
import { connectClient, connectTo, type PostgresServer, SERVER } from './postgres_server.ts'

/** A database of its own on the server, with what is opened on it, until `remove`. */
export class PostgresDatabase {
  readonly name: string
  readonly server: PostgresServer
  readonly db: Database
  #stores: LucidStore[] = []
  #databases: Database[] = []
  #clients: pg.Client[] = []

  private constructor(params: { name: string; server: PostgresServer }) {
    this.name = params.name
    this.server = params.server
    this.db = this.connection()
  }

  /** With the tables of durable. */
  static async create(server: PostgresServer = SERVER): Promise<PostgresDatabase> {
    const database = await PostgresDatabase.empty(server)
    const { schema } = database.db.connection()
    createDurableTables(schema, { version: 1 })
    await schema
    return database
  }

  static async empty(server: PostgresServer = SERVER): Promise<PostgresDatabase> {
    const admin = await connectClient('postgres', server)
    const name = `durable_test_${randomUUID().slice(0, 8)}`
    await admin.query(`create database ${name}`)
    await admin.end()
    return new PostgresDatabase({ name, server })
  }

  /** An opened store in this process. */
  async store(options: Partial<LucidStoreOptions> = {}): Promise<LucidStore> {
    const store = new LucidStore({ db: this.db, ...options })
    this.#stores.push(store)
    await store.open()
    return store
  }

  /** Lucid with a pool of its own. */
  connection(options: { searchPath?: string[] } = {}): Database {
    const db = connectTo(this.name, this.server, options.searchPath)
    this.#databases.push(db)
    return db
  }

  /** A plain connection. */
  async client(): Promise<pg.Client> {
    const client = await connectClient(this.name, this.server)
    this.#clients.push(client)
    return client
  }

  async query<T extends pg.QueryResultRow>(sql: string, values: unknown[] = []): Promise<T[]> {
    const { rows } = await this.db.rawQuery(sql.replaceAll(/\$\d+/g, '?'), values as string[])
    return rows
  }

  /** Closes the stores and plain connections, and empties the tables. */
  async clear(): Promise<void> {
    for (const client of this.#clients.splice(0)) await client.end()
    await this.closeStores()
    for (const table of tableNames()) await this.db.rawQuery(`delete from ${table}`)
  }

  async closeStores(): Promise<void> {
    await Promise.all(this.#stores.splice(0).map((store) => store.close()))
  }

  async remove(): Promise<void> {
    await this.closeStores()
    for (const client of this.#clients) await client.end()
    for (const db of this.#databases) await db.manager.closeAll()
    const admin = await connectClient('postgres', this.server)
    await admin.query(`drop database ${this.name} with (force)`)
    await admin.end()
  }
}

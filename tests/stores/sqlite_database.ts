import { Emitter } from '@adonisjs/core/events'
import { AppFactory } from '@adonisjs/core/factories/app'
import { LoggerFactory } from '@adonisjs/core/factories/logger'
import { Database } from '@adonisjs/lucid/database'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { RunStatus } from '../../src/core/run.ts'
import { LucidStore, type LucidStoreOptions } from '../../src/stores/lucid/lucid_store.ts'
import { createDurableTables } from '../../src/stores/lucid/schema.ts'

/** Lucid on one SQLite file, as an application has it. */
export function connectTo(filename: string): Database {
  const app = new AppFactory().create(new URL('./', import.meta.url))
  return new Database(
    {
      connection: 'app',
      connections: {
        app: {
          client: 'better-sqlite3',
          connection: { filename },
          useNullAsDefault: true,
        },
      },
    },
    new LoggerFactory().create(),
    new Emitter(app)
  )
}

/** Null: there is no such run. */
export async function statusOf(store: LucidStore, runId: string): Promise<RunStatus | null> {
  const run = await store.getRun(runId)
  return run === null ? null : run.status
}

/** Ids of the newest runs, at most a page. */
export async function idsIn(store: LucidStore): Promise<string[]> {
  const { runs } = await store.listRuns({})
  return runs.map(({ id }) => id)
}

/** A SQLite file of its own with what is opened on it, until `remove`. */
export class SqliteDatabase {
  readonly file: string
  readonly db: Database
  #directory: string
  #stores: LucidStore[] = []
  #databases: Database[]

  private constructor(directory: string) {
    this.#directory = directory
    this.file = join(directory, 'app.sqlite3')
    this.db = connectTo(this.file)
    this.#databases = [this.db]
  }

  /** With the tables of durable. */
  static async create(): Promise<SqliteDatabase> {
    const database = await SqliteDatabase.empty()
    const { schema } = database.db.connection()
    createDurableTables(schema, { version: 1 })
    await schema
    return database
  }

  static async empty(): Promise<SqliteDatabase> {
    return new SqliteDatabase(await mkdtemp(join(tmpdir(), 'durable-')))
  }

  /** An opened store in this process. */
  async store(options: Omit<LucidStoreOptions, 'db'> = {}): Promise<LucidStore> {
    const store = new LucidStore({ db: this.db, ...options })
    this.#stores.push(store)
    await store.open()
    return store
  }

  /** Another connection of the application's own, beside its pool of one. */
  connection(): Database {
    const db = connectTo(this.file)
    this.#databases.push(db)
    return db
  }

  async remove(): Promise<void> {
    for (const store of this.#stores) await store.close()
    for (const db of this.#databases) await db.manager.closeAll()
    await rm(this.#directory, { recursive: true })
  }
}

import type { Database } from '@adonisjs/lucid/database'
import { setTimeout as delay } from 'node:timers/promises'
import { E_ENGINE_STOPPED, E_STORE_BUSY } from '../../../errors.ts'
import type { Statement } from '../dialect.ts'
import { addEngineConnection, refusal } from '../engine_connection.ts'
import { asked, isBusy, type SqliteHandle, type SqliteStatement } from './handle.ts'

export interface SqliteConnectionOptions {
  db: Database
  /** Lucid connection whose configuration is used. */
  connection: string
  /** How long an operation goes on trying while others hold the database, in ms. */
  busyLimitMs: number
  /** Called before each statement, with its SQL. */
  trace: ((sql: string) => void) | undefined
}

/** A fixed pause: the next try comes when it is of use, and random ones would make the slowest much slower. */
const RETRY_MS = 1

/**
 * The engine's own connection to a SQLite database: a Lucid connection made of the application's configuration,
 * whose driver opens one handle that is kept. Statements are prepared once and run synchronously; no transaction spans an
 * `await`, so that whatever runs on this connection sees committed rows only.
 */
export class SqliteConnection {
  #options: SqliteConnectionOptions
  #opened: Promise<void> | undefined
  #handle: SqliteHandle | undefined
  #release: (() => Promise<void>) | undefined
  #prepared = new Map<string, SqliteStatement>()
  #file = ''

  constructor(options: SqliteConnectionOptions) {
    this.#options = options
  }

  /** The driver's connection. */
  get handle(): SqliteHandle {
    if (this.#handle === undefined) throw new E_ENGINE_STOPPED()
    return this.#handle
  }

  /** Absolute path of the database. */
  get file(): string {
    return this.#file
  }

  async open(): Promise<void> {
    this.#opened ??= this.#open()
    try {
      await this.#opened
    } catch (error) {
      this.#opened = undefined
      await this.#leave()
      throw error
    }
  }

  async close(): Promise<void> {
    await this.#opened?.catch(() => undefined)
    this.#opened = undefined
    await this.#leave()
  }

  async #leave() {
    const release = this.#release
    this.#handle = undefined
    this.#release = undefined
    this.#prepared.clear()
    await release?.()
  }

  /** Rows of one statement. `T` is their shape. */
  all<T>({ sql, values }: Statement): T[] {
    const statement = this.#statement(sql)
    return asked(() => statement.all(values)) as T[]
  }

  /** Number of rows that one statement changed. */
  run({ sql, values }: Statement): number {
    const statement = this.#statement(sql)
    return asked(() => statement.run(values)).changes
  }

  /** Runs `work`, again and again while others hold the database. Fails with E_STORE_BUSY after the limit. */
  async attempt<T>(work: () => T): Promise<T> {
    const begin = performance.now()
    for (;;) {
      try {
        return work()
      } catch (error) {
        if (!isBusy(error)) throw error
        const waited = Math.round(performance.now() - begin)
        if (waited >= this.#options.busyLimitMs) throw new E_STORE_BUSY([waited], { cause: error })
      }
      await delay(RETRY_MS)
    }
  }

  /** Runs `work`, which writes, in one transaction that holds the write lock from its start. */
  transaction<T>(work: () => T): Promise<T> {
    return this.attempt(() => {
      this.run({ sql: 'begin immediate', values: [] })
      try {
        const result = work()
        this.run({ sql: 'commit', values: [] })
        return result
      } catch (error) {
        if (this.handle.inTransaction) this.run({ sql: 'rollback', values: [] })
        throw error
      }
    })
  }

  /** Runs `work` so that nothing of it remains if it throws; only inside a transaction. */
  savepoint<T>(work: () => T): T {
    this.run({ sql: 'savepoint part', values: [] })
    try {
      const result = work()
      this.run({ sql: 'release part', values: [] })
      return result
    } catch (error) {
      if (!this.handle.inTransaction)
        throw new Error('SQLite has given up the whole transaction', { cause: error })
      this.run({ sql: 'rollback to part', values: [] })
      this.run({ sql: 'release part', values: [] })
      throw error
    }
  }

  #statement(sql: string): SqliteStatement {
    this.#options.trace?.(sql)
    const known = this.#prepared.get(sql)
    if (known) return known
    const statement = this.handle.prepare(sql)
    if (statement.reader) statement.safeIntegers(false)
    this.#prepared.set(sql, statement)
    return statement
  }

  async #open() {
    const { db, connection } = this.#options
    const engine = addEngineConnection({ db, connection, clients: ['better-sqlite3'] })
    const handle = (await engine.openHandle()) as SqliteHandle
    this.#release = async () => {
      handle.close()
      await engine.remove()
    }
    handle.exec('pragma busy_timeout = 0')
    this.#handle = handle
    // Others that open the file, or the last that closes it, hold it for a moment as a whole.
    await this.attempt(() => this.#prepare())
  }

  #prepare() {
    const { connection } = this.#options
    const [main] = this.all<{ file: string }>({
      sql: `select file from pragma_database_list where name = 'main'`,
      values: [],
    })
    if (!main?.file)
      throw refusal(
        connection,
        'is an in-memory database, which every connection has for itself: use a file'
      )
    this.#file = main.file
    const [journal] = this.all<{ journal_mode: string }>({
      sql: 'pragma journal_mode = wal',
      values: [],
    })
    if (journal?.journal_mode !== 'wal')
      throw refusal(connection, 'is on a file that cannot have a write-ahead log: use a local disk')
    this.run({ sql: 'pragma synchronous = full', values: [] })
  }
}

import type { FlushNews, Write } from '../../../core/change_set.ts'
import { foldBatch } from '../../../core/fold.ts'
import type { RunRow } from '../../../core/run.ts'
import type { ClaimRequest, Flush, NameLock } from '../../../contracts/store.ts'
import type { Client, Dialect, Statement } from '../dialect.ts'
import { planStatements } from '../plan_statements.ts'
import { applySplit, type Attempt } from '../split.ts'
import { ChangeWatch } from './change_watch.ts'
import { claimDue } from './claim.ts'
import { SqliteConnection, type SqliteConnectionOptions } from './connection.ts'
import { FRAGMENTS } from './fragments.ts'
import { isDataError } from './handle.ts'
import { LockedRows } from './locked_rows.ts'
import { takeNameLock } from './name_lock.ts'

const COLUMNS = `select t.name as "table", c.name as "column" from sqlite_schema t join pragma_table_info(t.name) c
  where t.type = 'table' and t.name in (${FRAGMENTS.texts})`

/** SQLite through better-sqlite3: one writer at a time, write-ahead log, every commit synced to the disk. */
export class SqliteDialect implements Dialect {
  readonly sql = FRAGMENTS
  readonly isElsewhere = false
  readonly locksNames = true
  #connection: SqliteConnection
  #watch: ChangeWatch
  #names = new Set<NameLock>()

  constructor(options: SqliteConnectionOptions) {
    this.#connection = new SqliteConnection(options)
    this.#watch = new ChangeWatch(() => this.#version())
  }

  open(): Promise<void> {
    return this.#connection.open()
  }

  async close(): Promise<void> {
    this.#watch.stop()
    for (const lock of this.#names) await lock.release()
    this.#names.clear()
    await this.#connection.close()
  }

  columns(tables: readonly string[]): Promise<{ table: string; column: string }[]> {
    return this.read({ sql: COLUMNS, values: [JSON.stringify(tables)] })
  }

  read<T>(statement: Statement): Promise<T[]> {
    return this.#connection.attempt(() => this.#connection.all<T>(statement))
  }

  async readTogether<T extends Record<string, object>>(statements: {
    [Name in keyof T]: Statement
  }): Promise<{ [Name in keyof T]: T[Name][] }> {
    const rows: Partial<{ [Name in keyof T]: T[Name][] }> = {}
    for (const name of Object.keys(statements) as (keyof T)[])
      rows[name] = await this.read<T[typeof name]>(statements[name])
    return rows as { [Name in keyof T]: T[Name][] }
  }

  write(statements: readonly Statement[]): Promise<number[]> {
    return this.#connection.transaction(() =>
      statements.map((statement) => this.#connection.run(statement))
    )
  }

  /** Others hold the whole database or nothing of it. */
  isHeldElsewhere(): boolean {
    return false
  }

  async through<T>(client: Client, { sql, values }: Statement): Promise<T[]> {
    // Null is bound like any other value; only the type of Lucid's bindings leaves it out.
    const rows: unknown = await client.rawQuery(sql, [...values] as (string | number)[])
    return Array.isArray(rows) ? rows : []
  }

  async flush(writes: readonly Write[]): Promise<Flush> {
    try {
      return await this.#connection.transaction(() => this.#apply(writes))
    } catch (error) {
      if (!isDataError(error)) throw error
    }
    return this.#connection.transaction(() => applySplit(writes, (some) => this.#attempt(some)))
  }

  claim(request: ClaimRequest): Promise<RunRow[]> {
    return claimDue(this.#connection, request)
  }

  leftDue(): void {}

  announced(): void {}

  withdrawn(): void {}

  comparing(): () => void {
    return () => {}
  }

  /** They see it in the file. */
  async tellThrough(): Promise<void> {}

  async tellingIf(): Promise<Statement[]> {
    return []
  }

  async lockName(name: string): Promise<NameLock | null> {
    const { handle, file: databaseFile } = this.#connection
    const lock = takeNameLock(handle, { databaseFile, name })
    if (lock) this.#names.add(lock)
    return lock
  }

  onForeignChange(listener: (news?: FlushNews) => void): () => void {
    return this.#watch.add(() => listener())
  }

  tellListeners(): void {
    this.#watch.tell()
  }

  /** Inside a transaction. */
  #attempt(writes: readonly Write[]): Attempt {
    try {
      return { flush: this.#connection.savepoint(() => this.#apply(writes)) }
    } catch (error) {
      if (!isDataError(error)) throw error
      return { refused: error }
    }
  }

  #apply(writes: readonly Write[]): Flush {
    const plan = foldBatch(writes, new LockedRows(this.#connection, writes))
    for (const statement of planStatements(plan, FRAGMENTS)) this.#connection.run(statement)
    return { answers: plan.answers, news: plan.news }
  }

  #version(): number {
    const sql = 'pragma data_version'
    return this.#connection.all<{ data_version: number }>({ sql, values: [] })[0]?.data_version ?? 0
  }
}

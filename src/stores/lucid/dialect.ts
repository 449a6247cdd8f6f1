import type { QueryClientContract } from '@adonisjs/lucid/types/database'
import type { FlushNews, Write } from '../../core/change_set.ts'
import type { RunRow } from '../../core/run.ts'
import type { ClaimRequest, Flush, NameLock, RunStanding } from '../../contracts/store.ts'

/** What is bound to a `?` of a statement. */
export type Value = string | number | null

export interface Statement {
  sql: string
  values: readonly Value[]
}

/** Lucid's query or transaction client, as far as the store sends statements through it. */
export type Client = Pick<QueryClientContract, 'rawQuery'>

/**
 * What is different from database to database. The statements of the rest of the store are the same for all: `?`
 * marks values, and what has no common spelling comes from `sql`.
 */
export interface Dialect {
  readonly sql: Fragments
  /** As in the contract of `RunStore`. */
  readonly isElsewhere: boolean

  /** Opens the engine's own connections. Idempotent. Fails with E_INVALID_CONFIG where the database cannot serve. */
  open(): Promise<void>
  /** Closes them and stops every timer. Idempotent. */
  close(): Promise<void>
  /** The columns of those of the tables that exist. */
  columns(tables: readonly string[]): Promise<{ table: string; column: string }[]>

  /** Runs one statement on its own. `T` is the shape of its rows. */
  read<T>(statement: Statement): Promise<T[]>
  /** Runs several reads, as one statement where the database can. The rows of each are in no order. */
  readTogether<T extends Record<string, object>>(statements: {
    [Name in keyof T]: Statement
  }): Promise<{ [Name in keyof T]: T[Name][] }>
  /** Runs statements in order in one transaction; resolves to the numbers of changed rows. */
  write(statements: readonly Statement[]): Promise<number[]>
  /** Whether `write` failed since others hold one of the rows; they may for long, a transaction of the application. */
  isHeldElsewhere(error: unknown): boolean
  /** Runs one statement through a client of the caller, as part of whatever transaction it is in. */
  through<T>(client: Client, statement: Statement): Promise<T[]>

  /**
   * Applies a batch as the contract of `RunStore.commit` says: locks what it touches, reads the state the fold asks
   * for, folds, and writes the plan, with one reading of the clock. Data errors split the batch by run, and the
   * offender alone is answered `refused`.
   */
  flush(writes: readonly Write[]): Promise<Flush>
  /** Takes due runs as the contract of `RunStore.claim` says, writing nothing when there are none. */
  claim(request: ClaimRequest): Promise<RunRow[]>

  /** Runs of these keys are due that a worker of this process has not taken: it asked when the next one is. */
  leftDue(claimKeys: readonly string[]): void

  /** A worker of this process has announced itself; it goes, or others have found it lost. */
  announced(instance: string): void
  withdrawn(instance: string): void
  /** What an instance holds is about to be read; the returned function is told what it is. */
  comparing(instance: string): (held: readonly RunStanding[]) => void
  lockName(name: string): Promise<NameLock | null>
  /** Whether the locks on names exclude others; only then does a name say whose runs may be taken over. */
  readonly locksNames: boolean
  onForeignChange(listener: (news?: FlushNews) => void): () => void
  /** Tells other processes, once the transaction of a caller commits, that a run of this key is due. */
  tellThrough(client: Client, claimKey: string): Promise<void>
  /** What a transaction of `write` runs to tell other processes that something has changed, if `found` has rows then. */
  tellingIf(found: Statement): Promise<Statement[]>
  /** Calls the listeners of this process: the clock has been moved, which concerns all. */
  tellListeners(): void
}

/** Pieces of SQL that are spelled differently. */
export interface Fragments {
  /** The clock: ms UTC of the statement's time plus the offset of tests. A scalar expression. */
  now: string
  /** A query of one column `value`: the texts of a JSON array that is bound to its one `?`. */
  texts: string
  /** Whether a column is one of the texts of a JSON array that is bound to its one `?`; rows are found by its index. */
  isAmong(column: string): string
  /** The same of a column of integers and a JSON array of them. */
  isAmongIntegers(column: string): string
  /** A statement that changes rows, whose locks it takes in order of the key. Values: those of `where`. */
  update(change: RowUpdate): string
}

export interface RowUpdate {
  table: string
  /** The one column of its primary key. */
  key: string
  /** Takes no values. */
  set: string
  where: string
  /** Passes over the rows that others hold, where rows can be. Default false: it waits for them. */
  skipLocked?: boolean
}

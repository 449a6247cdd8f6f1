import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connectTo } from '../tests/stores/sqlite_database.ts'
import type { BareRow, BareTables } from './bare_tables.ts'
import type { Tally } from './subject.ts'

type Values = Readonly<Record<string, string | number>>

/** What is used of a better-sqlite3 connection. */
interface Handle {
  prepare(sql: string): Prepared
  exec(sql: string): unknown
  close(): unknown
}

interface Prepared {
  run(values: Values): unknown
  all(values: Values): unknown[]
}

/** Rows that are written together. */
export interface BareChange {
  /** The run whose lease the rows depend on; null = none. */
  run: string | null
  rows: readonly (readonly [kind: BareRow, values: Values])[]
}

interface Queued {
  change: BareChange
  resolve: () => void
  reject: (error: unknown) => void
}

const ROWS = ['start', 'spawn', 'claim', 'record', 'complete', 'tell', 'take'] as const

/**
 * The limit to measure the engine against: rows written by a bare loop with group commit. All writes of an event-loop
 * turn are one transaction on a database in WAL with full synchronisation, which locks the runs it writes for and
 * checks their token first.
 */
export class BareWriter {
  #queue: Queued[] = []
  #statements: ReadonlyMap<BareRow, readonly Prepared[]>
  #begin: Prepared
  #end: Prepared
  #lock: Prepared
  #tally: Prepared
  #close: () => Promise<void>

  private constructor(handle: Handle, tables: BareTables, close: () => Promise<void>) {
    const prepared = (sql: string) => handle.prepare(sql)
    this.#statements = new Map(ROWS.map((kind) => [kind, tables[kind].map(prepared)]))
    this.#lock = prepared(tables.lock)
    this.#tally = prepared(tables.tally)
    this.#begin = prepared('begin immediate')
    this.#end = prepared('commit')
    this.#close = close
  }

  /** A writer on a new database of its own, with these tables. */
  static async create(tables: BareTables): Promise<BareWriter> {
    const directory = await mkdtemp(join(tmpdir(), 'durable-bare-'))
    const db = connectTo(join(directory, 'bare.sqlite3'))
    const { client } = db.connection().getWriteClient()
    const handle: Handle = await client.acquireRawConnection()
    handle.exec('pragma journal_mode = wal')
    handle.exec('pragma synchronous = full')
    for (const sql of tables.definition) handle.exec(sql)
    return new BareWriter(handle, tables, async () => {
      handle.close()
      await db.manager.closeAll()
      await rm(directory, { recursive: true })
    })
  }

  /** Resolves when the change is durable. */
  commit(change: BareChange): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.#queue.push({ change, resolve, reject })
    if (this.#queue.length === 1) setImmediate(() => this.#flush())
    return promise
  }

  tally(): Tally {
    const [tally] = this.#tally.all({}) as Tally[]
    if (!tally) throw new Error('The database gave no count')
    return tally
  }

  close(): Promise<void> {
    return this.#close()
  }

  #flush(): void {
    const batch = this.#queue.splice(0)
    try {
      this.#begin.run({})
      this.#write(batch.map(({ change }) => change))
      this.#end.run({})
    } catch (error) {
      for (const { reject } of batch) reject(error)
    }
    for (const { resolve } of batch) resolve()
  }

  #write(changes: readonly BareChange[]): void {
    const held = this.#held(changes.map(({ run }) => run).filter((id) => id !== null))
    for (const { run, rows } of changes) {
      if (run !== null && !held.has(run)) throw new Error(`The lease of ${run} is lost`)
      for (const [kind, values] of rows)
        for (const statement of this.#statements.get(kind) ?? []) statement.run(values)
    }
  }

  #held(ids: readonly string[]): ReadonlySet<string> {
    if (ids.length === 0) return new Set()
    const rows = this.#lock.all({ ids: JSON.stringify([...new Set(ids)]) }) as { id: string }[]
    return new Set(rows.map(({ id }) => id))
  }
}

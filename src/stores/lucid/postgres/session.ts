import { clearTimeout, setTimeout } from 'node:timers'
import { the } from '../../../core/present.ts'
import type { Value } from '../dialect.ts'
import { INT8, type PgClient, type PgQuery, type PgResult } from './driver.ts'
import { errorClass, PostgresDeadlineError, thrownByDriver } from './error_class.ts'

/** How long a statement may take, waits for locks included, in ms: default. */
export const STATEMENT_MS = 10_000
/** How long a statement waits for one lock, in ms, by default: others of the batch wait with it. */
export const LOCK_MS = 1_000
/** How long a transaction may stand still between its statements, in ms: less than a lease, whose rows it locks. */
const IDLE_MS = 5_000
/** What is added to the server's deadline before a server that says nothing counts as gone. */
const GRACE_MS = 1_000
/** Prepared statements of one session; there are fewer texts than this, and the limit is a net. */
const MAX_PREPARED = 500

/**
 * Plans are made once per session and must not depend on what the tables held then: rows are found by index and
 * joined to the few of the batch, whatever statistics say.
 */
const SETTINGS: Readonly<Record<string, string>> = {
  application_name: 'durable',
  idle_in_transaction_session_timeout: String(IDLE_MS),
  default_transaction_isolation: 'read committed',
  plan_cache_mode: 'force_generic_plan',
  enable_seqscan: 'off',
  enable_mergejoin: 'off',
  enable_hashjoin: 'off',
  enable_bitmapscan: 'off',
  max_parallel_workers_per_gather: '0',
  jit: 'off',
}

/** Applies the settings to the session, unless a pooler lies between: there they would reach other clients. */
const SET_UP = `select set_config('statement_timeout', $2, false), set_config('lock_timeout', $3, false),
  ${Object.entries(SETTINGS)
    .map(([name, value]) => `set_config('${name}', '${value}', false)`)
    .join(', ')},
  current_schema() as schema,
  (select backend_start::text from pg_stat_activity where pid = pg_backend_pid()) as started
  where pg_backend_pid() = $1`

/** The same for one transaction of a pooled connection. */
const SET_UP_TRANSACTION = `select set_config('statement_timeout', $1, true),
  set_config('lock_timeout', $2, true),
  set_config('idle_in_transaction_session_timeout', '${IDLE_MS}', true)`

/** A statement whose values may be arrays, for `unnest`. */
export interface PgStatement {
  sql: string
  values: readonly (Value | boolean | readonly (Value | boolean)[])[]
}

/** For one statement with many rows, which is planned for them: looking each up among all others would be slow. */
const PLAN_FOR_MANY: PgStatement = {
  sql: `select set_config('enable_hashjoin', 'on', true), set_config('plan_cache_mode', 'force_custom_plan', true)`,
  values: [],
}
const BEGIN: PgStatement = { sql: 'begin isolation level read committed', values: [] }
const COMMIT: PgStatement = { sql: 'commit', values: [] }
const ROLLBACK: PgStatement = { sql: 'rollback', values: [] }

export interface SessionOptions {
  /** Called before each statement, with its SQL. */
  trace: ((sql: string) => void) | undefined
  /** How long a statement may take, in ms. */
  statementMs: number
  /** How long it may wait for one lock, in ms. */
  lockMs: number
  /** Called once when the connection is gone, unless it was closed here. */
  onEnd: () => void
}

/** The server's side of a session, which can be told from a later one of the same process id. */
export interface Backend {
  pid: number
  started: string
}

/**
 * One open connection. Statements are sent without waiting for the answers to those before, so that a group of them
 * takes one round trip; a group is never mixed with another. A server that does not answer in time loses the connection.
 */
export class PostgresSession {
  /** Null behind a pooler, where a session is not one of the server's. */
  backend: Backend | null = null
  /** The schema in which the tables are. */
  schema = 'public'
  #client: PgClient
  #options: SessionOptions
  #isOpen = true
  #prepared = new Map<string, PgQuery>()
  /** The transaction that has begun and not ended. Whoever waits for it looks again: another may be first. */
  #transaction: PromiseWithResolvers<void> | null = null

  private constructor(client: PgClient, options: SessionOptions) {
    this.#client = client
    this.#options = options
    client.pipeline = true
    client.setTypeParser(INT8, Number)
  }

  /** Takes over the client, which is ended if it cannot be set up. */
  static async over(client: PgClient, options: SessionOptions): Promise<PostgresSession> {
    const session = new PostgresSession(client, options)
    client.on('error', () => session.#end())
    client.on('end', () => session.#end())
    try {
      await session.#setUp()
      return session
    } catch (error) {
      await session.close()
      throw error
    }
  }

  get isOpen(): boolean {
    return this.#isOpen
  }

  /** Whether something between gives each transaction another session of the server. */
  get isPooled(): boolean {
    return this.backend === null
  }

  onNotification(listener: (message: { channel: string; payload?: string | undefined }) => void) {
    this.#client.on('notification', listener)
  }

  /** Runs statements, each on its own. */
  async run(statements: readonly PgStatement[]): Promise<PgResult[]> {
    if (this.isPooled) return this.transaction(statements)
    while (this.#transaction) await this.#transaction.promise
    return this.#within(statements.map((statement) => this.#send(statement)))
  }

  /** Runs a statement whose values are many rows. */
  async runMany(statement: PgStatement): Promise<PgResult> {
    const [, result] = await this.transaction([PLAN_FOR_MANY, statement])
    return the(result, 'the answer of PostgreSQL')
  }

  /** Runs statements in one transaction, in one round trip. */
  async transaction(statements: readonly PgStatement[]): Promise<PgResult[]> {
    while (this.#transaction) await this.#transaction.promise
    const sent = [...this.#sendBegin(), ...statements.map((one) => this.#send(one))]
    const begun = sent.length - statements.length
    const results = await this.#withCommit(sent)
    return results.slice(begun)
  }

  /**
   * Begins a transaction with statements, in one round trip; whatever else is to be run waits until it has ended. If one
   * of them fails, it is rolled back.
   */
  async begin(statements: readonly PgStatement[]): Promise<PgResult[]> {
    while (this.#transaction) await this.#transaction.promise
    this.#transaction = Promise.withResolvers()
    const sent = [...this.#sendBegin(), ...statements.map((one) => this.#send(one))]
    try {
      const results = await this.#within(sent)
      return results.slice(sent.length - statements.length)
    } catch (error) {
      if (this.#isOpen) await this.rollback()
      throw error
    }
  }

  /** Runs statements and commits, in one round trip; rejects when nothing of the transaction was applied. */
  async commit(statements: readonly PgStatement[]): Promise<PgResult[]> {
    try {
      return await this.#withCommit(statements.map((one) => this.#send(one)))
    } finally {
      this.#release()
    }
  }

  /** A session on which it fails is dropped, which ends its transaction too. */
  async rollback(): Promise<void> {
    try {
      await this.#within([this.#send(ROLLBACK)])
    } catch (error) {
      if (this.#isOpen) this.#lose(error)
    } finally {
      this.#release()
    }
  }

  /** Closes the connection, waiting for what is under way. Idempotent. */
  async close(): Promise<void> {
    if (!this.#isOpen) return
    this.#isOpen = false
    await Promise.race([this.#client.end(), after(GRACE_MS)])
  }

  /** Drops the connection; what is under way is rejected with `error`. */
  drop(error: Error): void {
    this.#client.connection.stream.destroy(error)
  }

  async #setUp(): Promise<void> {
    const { processID } = this.#client
    const limits = [String(this.#options.statementMs), String(this.#options.lockMs)]
    const query = { text: SET_UP, values: [processID, ...limits] }
    const [result] = await this.#within([this.#client.query(query)])
    const found = result?.rows[0] as { schema: string | null; started: string } | undefined
    if (!found || processID === null) return
    this.backend = { pid: processID, started: found.started }
    this.schema = found.schema ?? 'public'
  }

  #release(): void {
    this.#transaction?.resolve()
    this.#transaction = null
  }

  #end(): void {
    this.#release()
    if (!this.#isOpen) return
    this.#isOpen = false
    this.#options.onEnd()
  }

  #lose(error: unknown): void {
    this.#end()
    this.drop(error instanceof Error ? error : new Error('The connection is lost'))
  }

  #sendBegin(): Promise<PgResult>[] {
    const begin = this.#send(BEGIN)
    if (!this.isPooled) return [begin]
    const { statementMs, lockMs } = this.#options
    const values = [String(statementMs), String(lockMs)]
    return [begin, this.#client.query({ text: SET_UP_TRANSACTION, values })]
  }

  /** A commit of a transaction that has failed answers ROLLBACK, without an error. */
  async #withCommit(sent: readonly Promise<PgResult>[]): Promise<PgResult[]> {
    const results = await this.#within([...sent, this.#send(COMMIT)])
    const committed = results.pop()
    if (committed?.command === 'COMMIT') return results
    throw new Error(`PostgreSQL answered ${committed?.command} to COMMIT`)
  }

  #send({ sql, values }: PgStatement): Promise<PgResult> {
    this.#options.trace?.(sql)
    const known = this.#prepared.get(sql)
    const query = known ?? this.#prepare(sql)
    return this.#client.query({ ...query, values })
  }

  #prepare(sql: string): PgQuery {
    let count = 0
    const text = sql.replaceAll('?', () => `$${++count}`)
    if (this.#prepared.size === MAX_PREPARED) return { text, values: [] }
    const name = { name: `durable_${this.#prepared.size + 1}` }
    const query = { ...(!this.isPooled && name), text, values: [] }
    this.#prepared.set(sql, query)
    return query
  }

  /** Waits for all, and rejects with the first error that says something: those after it only say that one was. */
  async #within(sent: readonly Promise<PgResult>[]): Promise<PgResult[]> {
    const limit = this.#options.statementMs + GRACE_MS
    const timer = setTimeout(() => this.drop(new PostgresDeadlineError(limit)), limit)
    try {
      const settled = await Promise.allSettled(sent)
      const results: PgResult[] = []
      for (const one of settled) {
        if (one.status === 'rejected') throw thrownByDriver(one.reason)
        results.push(one.value)
      }
      return results
    } catch (error) {
      // Of no use any more, whether or not the socket is gone.
      if (this.#isOpen && errorClass(error) === 'connection') this.#lose(error)
      throw error
    } finally {
      clearTimeout(timer)
    }
  }
}

function after(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms).unref())
}

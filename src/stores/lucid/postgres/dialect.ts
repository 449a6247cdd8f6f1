import type { Database } from '@adonisjs/lucid/database'
import { randomUUID } from 'node:crypto'
import type { Answer, FlushNews, Write } from '../../../core/change_set.ts'
import type { RunRow } from '../../../core/run.ts'
import type { ClaimRequest, Flush, NameLock, RunStanding } from '../../../contracts/store.ts'
import type { Client, Dialect, Statement } from '../dialect.ts'
import { addEngineConnection, type EngineConnection } from '../engine_connection.ts'
import { type RunColumns, toRun } from '../run_rows.ts'
import { claimStatement, HELD_RUNS } from './claim.ts'
import { PostgresConnection } from './connection.ts'
import { INT8, type PgResult } from './driver.ts'
import { Doubts } from './doubts.ts'
import { errorClass, isOutOfConnections } from './error_class.ts'
import { FRAGMENTS } from './fragments.ts'
import { HeldLane } from './held_lane.ts'
import { JointRead, type JointRow } from './joint_read.ts'
import { KnownLeases } from './known_leases.ts'
import { NoticeListener } from './listener.ts'
import { SessionNames } from './names.ts'
import { Notices } from './notices.ts'
import { notify } from './notify.ts'
import type { PostgresSession } from './session.ts'
import { PostgresWriter } from './writer.ts'

export interface PostgresDialectOptions {
  db: Database
  /** Lucid connection whose configuration is used. */
  connection: string
  /** Lucid connection for claims and notifications that goes past a pooler; default: `connection`. */
  direct: string
  /** How long a write goes on trying while the server is away or others hold its rows, in ms. */
  limitMs: number
  /** Called before each statement, with its SQL. */
  trace: ((sql: string) => void) | undefined
  warn: (message: string) => void
  /** How long a statement may take before its connection is dropped, in ms. Default 10,000. */
  statementMs?: number
  /** How long a statement waits for one lock, in ms. Default 1,000. */
  lockMs?: number | undefined
  /** False: every batch goes the way of those that touch tokens; for tests. Default true. */
  isFused?: boolean
}

/** The names by which Lucid knows the driver. */
export const POSTGRES_CLIENTS: readonly string[] = ['pg', 'postgres', 'postgresql']

const MAX_CONFLICTS = 5
/** An idle process leaves the server's connections to those that write. */
const WRITER_IDLE_MS = 30_000
const COLUMNS = `select table_name::text as "table", column_name::text as "column" from information_schema.columns
  where table_schema = any(current_schemas(false)) and table_name in (${FRAGMENTS.texts})`

/**
 * PostgreSQL through `pg`: one connection claims, renews, reads and listens from `open` to `close`; another writes, and
 * is closed while there is nothing to write. Both are opened again whenever they are lost.
 */
export class PostgresDialect implements Dialect {
  readonly sql = FRAGMENTS
  readonly isElsewhere = true
  #options: PostgresDialectOptions
  #engines: EngineConnection[] = []
  #notices = new Notices(randomUUID())
  #leases = new KnownLeases()
  #listener = new NoticeListener(this.#notices)
  #names: SessionNames
  #hasSessions = true
  #opened: Promise<void> | undefined
  #writing: PostgresConnection
  #claiming: PostgresConnection
  #waiting: PostgresConnection
  #lane: HeldLane
  #writer: PostgresWriter

  constructor(options: PostgresDialectOptions) {
    this.#options = options
    const { trace, limitMs, statementMs, lockMs } = options
    const settings = { trace, statementMs, lockMs }
    this.#writing = new PostgresConnection({
      openHandle: () => this.#openHandle(options.connection),
      idleMs: WRITER_IDLE_MS,
      ...settings,
    })
    this.#waiting = new PostgresConnection({
      openHandle: () => this.#openHandle(options.connection),
      ...settings,
    })
    this.#claiming = new PostgresConnection({
      openHandle: () => this.#openHandle(options.direct),
      ...settings,
      onOpen: async (session) => {
        await this.#names.retake(session)
        await this.#listener.listenOn(session)
      },
      onLost: () => this.#comeBack(),
    })
    this.#names = new SessionNames(() => this.#claiming.session())
    const doubts = new Doubts()
    this.#lane = new HeldLane({
      doubts,
      session: () => this.#sessionOf(this.#waiting),
      onEmpty: () => this.#waiting.close({ forGood: false }),
      notices: this.#notices,
      limitMs,
      onNews: (news) => {
        this.#listener.tell(news)
        this.#becameDue(news.due, performance.now())
      },
      warn: options.warn,
    })
    this.#writer = new PostgresWriter({
      doubts,
      session: () => this.#sessionOf(this.#writing),
      lane: this.#lane,
      notices: this.#notices,
      limitMs,
      mayHaveParent: (runId) => this.#leases.mayHaveParent(runId),
      isFused: options.isFused ?? true,
    })
  }

  get locksNames(): boolean {
    return this.#hasSessions
  }

  async open(): Promise<void> {
    this.#opened ??= this.#open()
    try {
      await this.#opened
    } catch (error) {
      await this.close()
      throw error
    }
  }

  async close(): Promise<void> {
    this.#listener.clear()
    this.#opened = undefined
    await this.#lane.close()
    await this.#waiting.close({ forGood: true })
    await this.#writing.close({ forGood: true })
    await this.#claiming.close({ forGood: true })
    this.#names.clear()
    for (const engine of this.#engines.splice(0)) await engine.remove()
  }

  columns(tables: readonly string[]): Promise<{ table: string; column: string }[]> {
    return this.read({ sql: COLUMNS, values: [JSON.stringify(tables)] })
  }

  async read<T>(statement: Statement): Promise<T[]> {
    const [result] = await this.#claiming.repeatable((session) => session.run([statement]))
    return (result?.rows ?? []) as T[]
  }

  async readTogether<T extends Record<string, object>>(statements: {
    [Name in keyof T]: Statement
  }): Promise<{ [Name in keyof T]: T[Name][] }> {
    const read = new JointRead<T>(statements)
    return read.rowsOf(await this.read<JointRow>(read.statement))
  }

  async write(statements: readonly Statement[]): Promise<number[]> {
    const [only, ...others] = statements
    for (let attempt = 1; ; attempt++) {
      try {
        const session = await this.#claiming.session()
        const results =
          only && others.length === 0
            ? await session.run([only])
            : await session.transaction(statements)
        return results.map(({ rowCount }) => rowCount ?? 0)
      } catch (error) {
        if (attempt === MAX_CONFLICTS || errorClass(error) !== 'conflict') throw error
      }
    }
  }

  isHeldElsewhere(error: unknown): boolean {
    return errorClass(error) === 'lock'
  }

  async through<T>(client: Client, { sql, values }: Statement): Promise<T[]> {
    // Null is bound like any other value; only the type of Lucid's bindings leaves it out.
    const result: PgResult = await client.rawQuery(sql, [...values] as (string | number)[])
    const big = result.fields.filter(({ dataTypeID }) => dataTypeID === INT8)
    for (const row of result.rows as Record<string, unknown>[])
      for (const { name } of big) if (row[name] !== null) row[name] = Number(row[name])
    return result.rows as T[]
  }

  async flush(writes: readonly Write[]): Promise<Flush> {
    this.#leases.sending(writes)
    const sentAt = performance.now()
    try {
      const flush = await this.#writer.flush(writes)
      this.#noteAnswers(writes, flush.answers)
      this.#becameDue(flush.news.due, sentAt)
      return flush
    } catch (error) {
      this.#leases.failed(writes, { isUnknown: errorClass(error) === 'connection' })
      throw error
    }
  }

  #noteAnswers(writes: readonly Write[], answers: readonly Answer[]): void {
    for (const [index, write] of writes.entries()) {
      const answer = answers[index]
      if (answer?.type === 'held')
        answer.answer.then(
          (later) => this.#noteAnswers([write], [later]),
          () => this.#leases.failed([write], { isUnknown: true })
        )
      else if (answer) this.#leases.answered(write, answer)
      if (write.type === 'start' && answer?.type === 'started') this.#notices.started(write.run.id)
    }
  }

  async claim(request: ClaimRequest): Promise<RunRow[]> {
    const { owner, claimKeys, limit } = request
    if (claimKeys.length === 0 || limit < 1) return []
    const session = await this.#claiming.session()
    if (this.#leases.isInDoubt) {
      const [held] = await session.run([{ sql: HELD_RUNS, values: [owner] }])
      const adopted = this.#leases.adopt(((held?.rows ?? []) as RunColumns[]).map(toRun))
      if (adopted.length > 0) return adopted
    }
    try {
      const [result] = await session.run([claimStatement(request)])
      const taken = ((result?.rows ?? []) as RunColumns[]).map(toRun)
      this.#leases.claimed(taken)
      this.#notices.claimed(claimKeys, { isSaturated: taken.length === limit })
      return taken
    } catch (error) {
      if (errorClass(error) === 'connection') this.#leases.claimFailed()
      throw error
    }
  }

  leftDue(claimKeys: readonly string[]): void {
    this.#tellSoon(this.#notices.left(claimKeys))
  }

  announced(instance: string): void {
    this.#notices.registered(instance)
  }

  withdrawn(instance: string): void {
    this.#notices.removed(instance)
    this.#leases.withdrawn(instance)
  }

  comparing(instance: string): (held: readonly RunStanding[]) => void {
    return this.#leases.comparing(instance)
  }

  /** Without sessions of its own a process cannot hold a name: every one is given, and none is exclusive. */
  lockName(name: string): Promise<NameLock | null> {
    return this.#hasSessions ? this.#names.take(name) : Promise.resolve(FREE)
  }

  onForeignChange(listener: (news?: FlushNews) => void): () => void {
    return this.#listener.add(listener)
  }

  async tellThrough(client: Client, claimKey: string): Promise<void> {
    const nothing = { inbox: [], ended: [], revoked: [] }
    const payload = this.#notices.payload({ ...nothing, due: new Set([claimKey]) })
    if (payload === null) return this.#becameDue([claimKey], performance.now())
    const { sql, values } = notify(await this.#claiming.session(), payload)
    await this.through(client, { sql, values })
  }

  async tellingIf(found: Statement): Promise<Statement[]> {
    const { sql, values } = notify(await this.#claiming.session(), this.#notices.anything)
    return [{ sql: `${sql} where exists (${found.sql})`, values: [...values, ...found.values] }]
  }

  tellListeners(): void {
    this.#listener.tell()
  }

  async #open() {
    const { db, connection, direct, warn } = this.#options
    for (const name of new Set([connection, direct]))
      this.#engines.push(addEngineConnection({ db, connection: name, clients: POSTGRES_CLIENTS }))
    this.#lane.open()
    this.#waiting.reopen()
    this.#writing.reopen()
    this.#claiming.reopen()
    await this.#claiming.session()
    this.#hasSessions = await this.#listener.isHeard(await this.#sessionOf(this.#writing))
    if (!this.#hasSessions) warn(POOLED)
  }

  #openHandle(connection: string): Promise<unknown> {
    const isDirect = connection === this.#options.direct
    const engine = isDirect ? this.#engines.at(-1) : this.#engines[0]
    return engine ? engine.openHandle() : Promise.reject(new Error('The store is not open'))
  }

  /** Where the server has no connection to spare, the one that claims does everything. */
  async #sessionOf(connection: PostgresConnection): Promise<PostgresSession> {
    try {
      return await connection.session()
    } catch (error) {
      if (isOutOfConnections(error)) return this.#claiming.session()
      throw error
    }
  }

  #becameDue(keys: Iterable<string>, sentAt: number): void {
    this.#tellSoon(this.#notices.becameDue(keys, sentAt))
  }

  /** Nobody waits for it: what is not heard, polling finds. */
  #tellSoon(payload: string | null): void {
    if (payload === null) return
    const tell = async () => {
      const session = await this.#claiming.session()
      await session.run([notify(session, payload)])
    }
    tell().catch(() => undefined)
  }

  /** Listens again at once; where that fails, the next claim or renewal tries it. */
  #comeBack() {
    this.#claiming.session().catch(() => undefined)
  }
}

const FREE: NameLock = { release: async () => {} }

const POOLED =
  'Notifications of PostgreSQL do not arrive: the connection seems to go through a pooler that gives each transaction ' +
  'another session. Runs are found by polling, and names of workers are not locked, so that a restarted worker takes ' +
  'its runs back only when the lease of its predecessor has ended. Name a connection that goes past the pooler: ' +
  'stores.lucid({ direct: "..." })'

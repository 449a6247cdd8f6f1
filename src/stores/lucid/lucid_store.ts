import type { Database } from '@adonisjs/lucid/database'
import type { FlushNews, StartWrite, Write } from '../../core/change_set.ts'
import type { DispatchKey } from '../../core/dispatch.ts'
import type { ChildOutcome, HistoryRecord, Wait } from '../../core/history.ts'
import { PRIORITIES, RUN_FORMAT, type RunRow } from '../../core/run.ts'
import { the } from '../../core/present.ts'
import { created } from '../../core/transition.ts'
import { E_SCHEMA_BEHIND, E_SCHEMA_MISSING } from '../../errors.ts'
import type {
  ChildState,
  ClaimRequest,
  Flush,
  LoadedRun,
  LoadRequest,
  NameLock,
  NewWorker,
  RunQuery,
  RunStanding,
  Started,
  Store,
  StoredRun,
  StoredRunPage,
  StrandedRun,
  SuspectRule,
  TransactionalStore,
  WorkerRow,
} from '../../contracts/store.ts'
import { readOutcomes, readStates } from './children.ts'
import type { Client, Dialect } from './dialect.ts'
import { refusal } from './engine_connection.ts'
import { Leases } from './leases.ts'
import { loadRuns } from './loading.ts'
import { insertStatements } from './plan_statements.ts'
import { POSTGRES_CLIENTS, PostgresDialect } from './postgres/dialect.ts'
import { RUNS } from './lost_runs.ts'
import { readErrors, readInputs, readHistory, readRun, readStandings } from './run_details.ts'
import { listRuns } from './run_list.ts'
import { type RunColumns, runColumns, toRun } from './run_rows.ts'
import { tableNames, versionOfShape } from './schema.ts'
import { SqliteDialect } from './sqlite/dialect.ts'
import { findStranded } from './stranded.ts'
import { SCHEMA_VERSION } from './tables.ts'

export interface LucidStoreOptions {
  db: Database
  /** Lucid connection; default: the primary one. */
  connection?: string
  /**
   * PostgreSQL: Lucid connection that goes past a pooler, for claims, leases and notifications. Default: `connection`.
   */
  direct?: string
  /** How long a write goes on trying while others hold the database, or it is away, in ms. Default 5,000. */
  busyLimitMs?: number
  /** PostgreSQL: how long a statement waits for one lock, in ms; for tests. Default 1,000. */
  lockMs?: number
  /** Called before each statement, with its SQL. */
  trace?: (sql: string) => void
  /** Told what works less well than it could. Default: a warning of the process. */
  warn?: (message: string) => void
}

const BUSY_LIMIT_MS = 5_000
const SQLITE_CLIENT = 'better-sqlite3'

/** By the driver of the connection; one that is unknown is refused when the store is opened. */
function dialectFor(options: LucidStoreOptions, connection: string): Dialect {
  const { db, direct = connection, busyLimitMs: limitMs = BUSY_LIMIT_MS, trace, lockMs } = options
  const warn = options.warn ?? ((message: string) => process.emitWarning(message))
  const client = db.manager.get(connection)?.config.client ?? ''
  if (POSTGRES_CLIENTS.includes(client))
    return new PostgresDialect({ db, connection, direct, limitMs, trace, warn, lockMs })
  return new SqliteDialect({ db, connection, busyLimitMs: limitMs, trace })
}

/**
 * Runs in the application's database, through connections of the engine's own: a transaction that the application
 * holds open does not stop other runs, beyond the locks it holds. Nothing is opened before `open`.
 *
 * SQLite: the file is switched to write-ahead logging. While a transaction of the application writes, all writes of
 * the store wait for it, and fail with E_STORE_BUSY after `busyLimitMs`.
 *
 * PostgreSQL: two connections, a third while a row that is to be written is held by others.
 */
export class LucidStore implements Store, TransactionalStore<Client> {
  readonly description: string
  #dialect: Dialect
  #leases: Leases
  #connection: string
  #client: string

  constructor(options: LucidStoreOptions) {
    this.#connection = options.connection ?? options.db.primaryConnectionName
    const client = options.db.manager.get(this.#connection)?.config.client ?? 'unknown'
    this.#client = client
    this.description = `connection "${this.#connection}" (${client})`
    this.#dialect = dialectFor(options, this.#connection)
    this.#leases = new Leases(this.#dialect)
  }

  get isElsewhere(): boolean {
    return this.#dialect.isElsewhere
  }

  async open(): Promise<void> {
    this.#refuseUnknownDriver()
    await this.#dialect.open()
    try {
      await this.#checkSchema()
    } catch (error) {
      await this.#dialect.close()
      throw error
    }
  }

  close(): Promise<void> {
    return this.#dialect.close()
  }

  async now(): Promise<number> {
    const sql = `select ${this.#dialect.sql.now} as now`
    const [row] = await this.#dialect.read<{ now: number }>({ sql, values: [] })
    return the(row, 'the clock of the store').now
  }

  async advanceClock(ms: number): Promise<void> {
    await this.#dialect.write([
      {
        sql: `insert into durable_meta (name, value) values ('clock_offset', ?)
          on conflict (name) do update set value = durable_meta.value + excluded.value`,
        values: [ms],
      },
    ])
    this.#dialect.tellListeners()
  }

  onForeignChange(listener: (news?: FlushNews) => void): () => void {
    return this.#dialect.onForeignChange(listener)
  }

  async commit(writes: readonly Write[]): Promise<Flush> {
    return this.#dialect.flush(writes)
  }

  /** The row goes in first, so that a transaction that has only read so far does not find its snapshot too old. */
  async startWith(client: Client, { run, leaseTo }: StartWrite): Promise<Started> {
    const row = created(run, { leaseTo, now: await this.now() })
    const [insertRun, ...rest] = insertStatements({ ...run, row, output: null, error: null })
    if (insertRun) {
      const { sql, values } = insertRun
      const mine = { sql: `${sql} on conflict (id) do nothing returning id`, values }
      const inserted = await this.#dialect.through(client, mine)
      if (inserted.length > 0) {
        for (const statement of rest) await this.#dialect.through(client, statement)
        await this.#dialect.tellThrough(client, row.claimKey)
        return { type: 'started', created: true, run: row }
      }
    }
    const sql = `select ${runColumns('r')} from durable_runs r where r.id = ?`
    const [existing] = await this.#dialect.through<RunColumns>(client, { sql, values: [run.id] })
    return { type: 'started', created: false, run: existing ? toRun(existing) : row }
  }

  claim(request: ClaimRequest): Promise<RunRow[]> {
    return this.#dialect.claim(request)
  }

  async heartbeat({ runId, seq, generation, attempt }: DispatchKey): Promise<boolean> {
    const sql = `update durable_waits
      set due_at = case when silence_ms is null then due_at else ${this.#dialect.sql.now} + silence_ms end
      where run_id = ? and seq = ? and dispatch_generation = ? and dispatch_attempt = ? and attempts < dispatch_attempt`
    const values = [runId, seq, generation, attempt]
    const [found = 0] = await this.#dialect.write([{ sql, values }])
    return found > 0
  }

  load(requests: readonly LoadRequest[]): Promise<LoadedRun[]> {
    return loadRuns(this.#dialect, requests)
  }

  childOutcomes(parent: { runId: string; seq: number }): Promise<ChildOutcome[]> {
    return readOutcomes(this.#dialect, parent)
  }

  childStates(parent: { runId: string; seq: number }): Promise<ChildState[]> {
    return readStates(this.#dialect, parent)
  }

  async offerBlocked(claimKeys: readonly string[]): Promise<number> {
    const { now, texts, update } = this.#dialect.sql
    // What others hold comes at the end of its pause: a worker that starts does not wait for them.
    const sql = update({
      ...RUNS,
      skipLocked: true,
      set: `due_at = ${now}, updated_at = ${now}`,
      where: `status = 'blocked' and due_at > ${now} and claim_key in (${texts})`,
    })
    const [offered = 0] = await this.#dialect.write([{ sql, values: [JSON.stringify(claimKeys)] }])
    return offered
  }

  async findOverdue(limit: number): Promise<string[]> {
    const { now } = this.#dialect.sql
    const rows = await this.#dialect.read<{ id: string }>({
      sql: `select id from durable_runs where deadline_at is not null and ended_at is null
        and phase = 'body' and deadline_at <= ${now} order by deadline_at limit ?`,
      values: [limit],
    })
    return rows.map(({ id }) => id)
  }

  async nextDueIn(claimKeys: readonly string[]): Promise<number | null> {
    const { now, texts } = this.#dialect.sql
    const nearest = PRIORITIES.map(
      (priority) => `(select r.due_at from durable_runs r
        where r.claim_key = k.value and r.priority = ${priority} and r.due_at is not null
          and r.format <= ${RUN_FORMAT} order by r.due_at limit 1)`
    )
    const each = nearest.map((due) => `select ${due} as due_at from keys k`).join(' union all ')
    const [row] = await this.#dialect.read<{ due_in: number | null }>({
      sql: `with keys as (${texts}) select min(due_at) - ${now} as due_in from (${each}) nearest`,
      values: [JSON.stringify(claimKeys)],
    })
    if (row === undefined || row.due_in === null) return null
    if (row.due_in <= 0) this.#dialect.leftDue(claimKeys)
    return Math.max(0, row.due_in)
  }

  registerWorker(worker: NewWorker): Promise<{ takenOver: number }> {
    return this.#leases.register(worker)
  }

  renewWorker(instance: string): Promise<boolean> {
    return this.#leases.renew(instance)
  }

  describeWorker(instance: string, descriptor: string): Promise<void> {
    return this.#leases.describe(instance, descriptor)
  }

  removeWorker(instance: string): Promise<void> {
    return this.#leases.remove(instance)
  }

  recoverExpired(params: SuspectRule = {}): Promise<{ workers: number; runs: number }> {
    return this.#leases.recoverExpired(params)
  }

  heldBy(instance: string): Promise<RunStanding[]> {
    return this.#leases.held(instance)
  }

  lockName(name: string): Promise<NameLock | null> {
    return this.#dialect.lockName(name)
  }

  getRun(runId: string): Promise<StoredRun | null> {
    return readRun(this.#dialect, runId)
  }

  statusesOf(runIds: readonly string[]): Promise<RunStanding[]> {
    return readStandings(this.#dialect, runIds)
  }

  errorsOf(runIds: readonly string[]): Promise<{ runId: string; error: string }[]> {
    return readErrors(this.#dialect, runIds)
  }

  inputsOf(runIds: readonly string[]): Promise<{ runId: string; input: string }[]> {
    return readInputs(this.#dialect, runIds)
  }

  listRuns(query: RunQuery): Promise<StoredRunPage> {
    return listRuns(this.#dialect, query)
  }

  getHistory(runId: string): Promise<{ records: HistoryRecord[]; waits: Wait[] } | null> {
    return readHistory(this.#dialect, runId)
  }

  findStranded(): Promise<StrandedRun[]> {
    return findStranded(this.#dialect)
  }

  listWorkers(): Promise<WorkerRow[]> {
    return this.#leases.list()
  }

  #refuseUnknownDriver() {
    if (this.#client === 'unknown' || [SQLITE_CLIENT, ...POSTGRES_CLIENTS].includes(this.#client))
      return
    throw refusal(
      this.#connection,
      `uses "${this.#client}", and durable needs "${SQLITE_CLIENT}" (SQLite) or "pg" (PostgreSQL)`
    )
  }

  async #checkSchema() {
    const found = await this.#dialect.columns(tableNames())
    if (found.length === 0) throw new E_SCHEMA_MISSING([this.#connection])
    const version = versionOfShape(found)
    if (version < SCHEMA_VERSION)
      throw new E_SCHEMA_BEHIND([this.#connection, version, SCHEMA_VERSION])
  }
}

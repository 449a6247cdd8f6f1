import type { Answer, FlushNews, StartWrite, Write } from '../core/change_set.ts'
import type { DispatchKey } from '../core/dispatch.ts'
import type { ChildOutcome, HistoryRecord, InboxEntry, Wait } from '../core/history.ts'
import type { RunPayloads, RunPhase, RunRow, RunStatus } from '../core/run.ts'
import type { StoredAttribute } from '../core/search_attributes.ts'

/**
 * Where runs and histories live. Instants are milliseconds UTC of the store's clock, which no caller's clock
 * reading ever enters; durations are milliseconds. Every method rejects with the driver's error while the
 * database is away, and nothing of the call has then been applied, or all of it.
 */
export interface Store extends RunStore, LeaseStore, RunReader {
  /** What it is and where, for log lines: `connection "main" (pg)`. */
  readonly description: string
  /** Opens what the store needs; called before the first use. Idempotent. Fails with E_SCHEMA_MISSING or E_SCHEMA_BEHIND. */
  open(): Promise<void>
  /** Closes the store's own connections and stops its timers. Idempotent. */
  close(): Promise<void>
  /** The store's clock. */
  now(): Promise<number>
  /** Moves the clock of every process on this database by `ms`; for tests. */
  advanceClock(ms: number): Promise<void>
  /**
   * Calls `listener` when another process may have changed something, until the returned function is called; with
   * what has changed, or without an argument where anything may have. A hint: it may come late, for nothing, or not
   * at all.
   */
  onForeignChange(listener: (news?: FlushNews) => void): () => void
}

/**
 * A store whose runs can be stored by a transaction of the caller.
 *
 * @template Client what the transaction is passed as
 */
export interface TransactionalStore<Client> {
  /**
   * Stores a run as part of the caller's transaction, with the answer that `commit` gives to the same write. Nobody
   * else sees the run before the caller commits, and it never exists if the caller rolls back. Neither is told to
   * anyone: whoever started it wakes the workers after the commit.
   */
  startWith(client: Client, write: StartWrite): Promise<Started>
}

export type Started = Extract<Answer, { type: 'started' }>

/** The one write path, and what a turn reads. */
export interface RunStore {
  /** True: another process executes the commits, so this one can go on meanwhile. */
  readonly isElsewhere: boolean

  /**
   * Applies a batch in order, in one transaction under the locks of all rows it touches. The answers are in the
   * order of the writes. A change set whose token is stale is answered `lost` and contributes nothing; the others
   * are not harmed by it. Where the database refuses the rows of a run themselves (a constraint, a text too large),
   * all writes of that run are answered `refused`, and the others are applied. Callers keep one call in flight per
   * store.
   */
  commit(writes: readonly Write[]): Promise<Flush>

  /** Takes due runs for `owner`, by priority and due time. Each gets a new token. A worker that is not live gets none. */
  claim(request: ClaimRequest): Promise<RunRow[]>

  /**
   * A worker executes an attempt: puts the deadline of its wait off by `silenceMs` of the wait, and touches nothing else,
   * so that a run which is woken at the old time finds it is not due. False: nobody waits for the attempt any more.
   */
  heartbeat(attempt: DispatchKey): Promise<boolean>

  /** What a turn needs of runs whose lease the caller holds; read after the claim. Unknown runs are left out. */
  load(requests: readonly LoadRequest[]): Promise<LoadedRun[]>

  /** Outcomes of the ended children of an operation, by index. Children that have not ended are left out. */
  childOutcomes(parent: { runId: string; seq: number }): Promise<ChildOutcome[]>

  /** The children an operation has started, and where each stands, without payloads. */
  childStates(parent: { runId: string; seq: number }): Promise<ChildState[]>

  /**
   * Makes blocked runs of these keys due: a worker has started, whose code may fit their histories. Resolves to their
   * number.
   */
  offerBlocked(claimKeys: readonly string[]): Promise<number>

  /**
   * Live runs whose execution time is over, at most `limit`. Not those that unwind or follow a handler: their bodies
   * are over, and what undoes or settles them is to come to its end.
   */
  findOverdue(limit: number): Promise<string[]>

  /** Ms until the nearest due time among the runs of these keys (0 = due now); null = none. */
  nextDueIn(claimKeys: readonly string[]): Promise<number | null>
}

export interface Flush {
  answers: Answer[]
  news: FlushNews
}

export interface ClaimRequest {
  /** Instance id of the worker. */
  owner: string
  claimKeys: readonly string[]
  /** At most this many runs. */
  limit: number
}

export interface LoadRequest {
  runId: string
  /** The caller has the history and waits in memory: only the inbox is wanted. */
  resident: boolean
  /** Entries above this number. */
  inboxAfter: number
}

export interface LoadedRun {
  runId: string
  /** Encoded input; null for a resident run. */
  input: string | null
  /** Encoded failure that the run unwinds or follows for; null = none, or resident. */
  error: string | null
  /** Live generation, in order of `seq`; empty for a resident run. */
  history: HistoryRecord[]
  /** Positions of operations that were undone before the run was requeued, once for each time. */
  undone: number[]
  /** In order of `seq`. Given for resident runs too, so that due times are judged by the store's clock. */
  waits: Wait[]
  /** In order of `no`. */
  inbox: InboxEntry[]
  /** The store's clock when this was read. */
  now: number
}

export interface ChildState {
  index: number
  runId: string
  status: RunStatus
}

/** Leases are per process: one row per worker, renewed whatever the number of its runs. */
interface LeaseStore {
  /**
   * Announces a worker; rejects while its instance has a row. With `takeOver`, earlier instances of the same name are
   * marked lost and their runs made due in the same write; only for a starting process that holds the lock on that name.
   */
  registerWorker(worker: NewWorker): Promise<{ takenOver: number }>
  /** Extends the lease by its duration. False: it was recovered by others, and the instance must not go on. */
  renewWorker(instance: string): Promise<boolean>
  /** Replaces what a worker announces of itself. */
  describeWorker(instance: string, descriptor: string): Promise<void>
  /** Takes the worker's row away. What it still holds is made due, not counted as recoveries; now or by `recoverExpired`. */
  removeWorker(instance: string): Promise<void>
  /**
   * Marks workers whose lease has expired lost and makes the runs of lost workers due, or parks them. Runs whose next claim
   * is at least the `suspectFrom`th that is counted become suspects (null: none). Runs of an instance without a row become
   * due too, uncounted. Rows of lost workers that no run names are deleted a lease after the end of theirs. A run whose row
   * others hold for long is left to a later call. Resolves to how many workers and runs were found.
   */
  recoverExpired(params?: SuspectRule): Promise<{ workers: number; runs: number }>
  /** Runs that an instance holds, whether it knows of them or not. */
  heldBy(instance: string): Promise<RunStanding[]>
  /** Takes the session lock on a stable worker name; null when another live process holds it. */
  lockName(name: string): Promise<NameLock | null>
}

export interface NewWorker extends SuspectRule {
  /** Made up for this call, and never used again once it is lost. */
  instance: string
  /** Stable across restarts. */
  name: string
  leaseMs: number
  /** What the worker announces of itself, as JSON. */
  descriptor: string
  /** False: runs that it loses are not counted as recoveries, as under the development server. Default true. */
  isCounted?: boolean | undefined
  takeOver: boolean
}

/** The number of the counted claim, the next included, from which on a lost run is a suspect; null (default) = never. */
export interface SuspectRule {
  suspectFrom?: number | null | undefined
}

export interface NameLock {
  /** Idempotent. */
  release(): Promise<void>
  /**
   * Calls `listener` when the lock was lost with a connection and another process has taken it since. Left out by
   * stores that lose no lock.
   */
  onLost?(listener: () => void): void
}

/** What the terminal and the dashboard read. Lists never load payloads and page by key. */
interface RunReader {
  getRun(runId: string): Promise<StoredRun | null>
  /** Where these runs stand, without payloads. Unknown ones are left out. */
  statusesOf(runIds: readonly string[]): Promise<RunStanding[]>
  /** What these runs failed with, encoded, and nothing else of their payloads. Those without an error are left out. */
  errorsOf(runIds: readonly string[]): Promise<{ runId: string; error: string }[]>
  /** What these runs were given, encoded, and nothing else of their payloads. Unknown ones are left out. */
  inputsOf(runIds: readonly string[]): Promise<{ runId: string; input: string }[]>
  listRuns(query: RunQuery): Promise<StoredRunPage>
  /** Every generation, in order of generation and `seq`, with the open waits. Null: unknown run. */
  getHistory(runId: string): Promise<{ records: HistoryRecord[]; waits: Wait[] } | null>
  /** Live runs that nothing will wake (promise P4), without scanning history. */
  findStranded(): Promise<StrandedRun[]>
  listWorkers(): Promise<WorkerRow[]>
}

export interface RunStanding {
  runId: string
  claimKey: string
  status: RunStatus
  phase: RunPhase
  token: number
  /** As in `RunRow`. */
  errorCode: string | null
}

export interface StoredRun extends RunRow, RunPayloads {
  tags: string[]
  /** What the run is found by; dates as ISO texts. */
  attributes: Record<string, StoredAttribute>
}

export interface RunQuery {
  /** Only runs with one of these ids. */
  ids?: readonly string[] | undefined
  status?: RunStatus | undefined
  workflow?: string | undefined
  namespace?: string | undefined
  tag?: string | undefined
  /** Search attributes that a run has, every one of them. */
  attributes?: Readonly<Record<string, StoredAttribute | Date>> | undefined
  parentId?: string | undefined
  /** From 1 to 1,000, default 50. The engine refuses another; a store takes the nearest one. */
  limit?: number | undefined
  /** The `next` of an earlier page, from any store; another text fails with E_INVALID_CURSOR. */
  after?: string | undefined
}

export interface StoredRunPage {
  /** Newest first. */
  runs: RunRow[]
  /** Null on the last page. */
  next: string | null
}

export interface StrandedRun {
  runId: string
  reason: StrandedReason
}

/**
 * `no_wake`: suspended without a due time, and nothing it waits for can come any more (no wait, a missing wait
 * row, or a child that has ended without its entry). `unread_inbox`: suspended with an entry that should have made it due.
 * `unknown_owner`: running under an instance that has no worker row, until `recoverExpired` takes it.
 * `no_due_time`: pending or blocked without a due time. `missing_child`: it waits for a run that does not exist.
 * `stalled`: its body awaits nothing that would ever come; the process that executes it says so, not the store.
 */
export type StrandedReason =
  'no_wake' | 'unread_inbox' | 'unknown_owner' | 'no_due_time' | 'missing_child' | 'stalled'

export interface WorkerRow {
  instance: string
  name: string
  /** When its lease expires. */
  until: number
  /** Others have taken its runs over; its row is deleted some time later. */
  lost: boolean
  descriptor: string
  startedAt: number
}

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
  Store,
  StoredRun,
  StoredRunPage,
  StrandedRun,
  SuspectRule,
  WorkerRow,
} from '../../contracts/store.ts'
import type { Write } from '../../core/change_set.ts'
import type { DispatchKey } from '../../core/dispatch.ts'
import {
  type ChildOutcome,
  type HistoryRecord,
  liveAndUndone,
  type Wait,
} from '../../core/history.ts'
import { isTerminal, type RunRow } from '../../core/run.ts'
import { claimed, isOverdue } from '../../core/transition.ts'
import { flush } from './flush.ts'
import { MemoryDatabase } from './memory_database.ts'
import { runPage } from './run_page.ts'
import { strandedRuns } from './stranded_runs.ts'

/**
 * A store that lives as long as its database object. Several stores on one database behave like several
 * connections. Nothing it gives away or takes in is shared with its tables.
 */
export class MemoryStore implements Store {
  readonly description = 'memory, which ends with this process'
  readonly isElsewhere: boolean = false
  #listeners = new Set<() => void>()

  constructor(readonly database: MemoryDatabase = new MemoryDatabase()) {
    database.connect(this)
  }

  async open(): Promise<void> {
    this.database.connect(this)
  }

  async close(): Promise<void> {
    this.database.disconnect(this)
    this.#listeners.clear()
  }

  async now(): Promise<number> {
    return this.database.now()
  }

  async advanceClock(ms: number): Promise<void> {
    this.database.advanceClock(ms)
    this.database.changed()
  }

  onForeignChange(listener: () => void): () => void {
    const own = () => listener()
    this.#listeners.add(own)
    return () => this.#listeners.delete(own)
  }

  /** Calls the listeners after the write that caused it has been answered. */
  changedByAnother() {
    queueMicrotask(() => {
      for (const listener of this.#listeners) listener()
    })
  }

  async commit(writes: readonly Write[]): Promise<Flush> {
    const flushed = flush(this.database, writes)
    this.database.changed(this)
    return flushed
  }

  async claim({ owner, claimKeys, limit }: ClaimRequest): Promise<RunRow[]> {
    const { runs, workers } = this.database
    if (!workers.isLive(owner)) return []
    const now = this.database.now()
    return runs.due.take(claimKeys, { limit, now }).flatMap((id) => {
      const row = runs.get(id)
      if (!row) return []
      const taken = claimed(row, { owner, now })
      runs.replace(taken)
      return [taken]
    })
  }

  async heartbeat(attempt: DispatchKey): Promise<boolean> {
    return this.database.waits.heartbeat(attempt, this.database.now())
  }

  async load(requests: readonly LoadRequest[]): Promise<LoadedRun[]> {
    const { runs, history, waits, inbox } = this.database
    const now = this.database.now()
    return requests.flatMap(({ runId, resident, inboxAfter }) => {
      const payloads = runs.payloads(runId)
      if (!payloads) return []
      const loaded = {
        runId,
        input: resident ? null : payloads.input,
        error: resident ? null : payloads.error,
        ...liveAndUndone(resident ? [] : history.all(runId)),
        waits: waits.of(runId),
        inbox: inbox.above(runId, inboxAfter),
        now,
      }
      return [loaded]
    })
  }

  async childOutcomes(parent: { runId: string; seq: number }): Promise<ChildOutcome[]> {
    const ended = this.#children(parent).filter(({ status }) => isTerminal(status))
    return ended.map(({ id, status, index }) => {
      const { output, error } = this.database.runs.payloads(id) ?? { output: null, error: null }
      return { index, runId: id, status, output, error }
    })
  }

  async childStates(parent: { runId: string; seq: number }): Promise<ChildState[]> {
    return this.#children(parent).map(({ index, id: runId, status }) => ({ index, runId, status }))
  }

  async offerBlocked(claimKeys: readonly string[]): Promise<number> {
    const { runs } = this.database
    const keys = new Set(claimKeys)
    const now = this.database.now()
    const blocked = [...runs.rows()].filter(
      ({ status, claimKey, dueAt }) => status === 'blocked' && keys.has(claimKey) && dueAt! > now
    )
    for (const row of blocked) runs.replace({ ...row, dueAt: now, updatedAt: now })
    if (blocked.length > 0) this.database.changed(this)
    return blocked.length
  }

  async findOverdue(limit: number): Promise<string[]> {
    const now = this.database.now()
    return [...this.database.runs.rows()]
      .filter((row) => isOverdue(row, now))
      .sort((a, b) => a.deadlineAt! - b.deadlineAt!)
      .slice(0, limit)
      .map(({ id }) => id)
  }

  async nextDueIn(claimKeys: readonly string[]): Promise<number | null> {
    const nearest = this.database.runs.due.nearest(claimKeys)
    return nearest === null ? null : Math.max(0, nearest - this.database.now())
  }

  async registerWorker(worker: NewWorker): Promise<{ takenOver: number }> {
    const { workers } = this.database
    const { name, takeOver, suspectFrom = null } = worker
    const earlier = takeOver ? workers.all().filter((other) => other.name === name) : []
    const gone = earlier.map((other) => other.instance)
    workers.register(worker, this.database.now())
    this.database.markLost((other) => gone.includes(other.instance))
    const takenOver = this.database.orphan(gone, { suspectFrom })
    if (takenOver > 0) this.database.changed(this)
    return { takenOver }
  }

  async renewWorker(instance: string): Promise<boolean> {
    return this.database.workers.renew(instance, this.database.now())
  }

  async describeWorker(instance: string, descriptor: string): Promise<void> {
    this.database.workers.describe(instance, descriptor)
  }

  async removeWorker(instance: string): Promise<void> {
    this.database.workers.remove(instance)
    if (this.database.orphan([instance], { suspectFrom: null }) > 0) this.database.changed(this)
  }

  async recoverExpired({ suspectFrom = null }: SuspectRule = {}): Promise<{
    workers: number
    runs: number
  }> {
    const { workers, runs } = this.database
    const now = this.database.now()
    const expired = this.database.markLost(({ until }) => until <= now)
    const gone = runs.owners().filter((owner) => !workers.isLive(owner))
    const recovered = this.database.orphan(gone, { suspectFrom })
    workers.forget({ now, ownsRuns: (instance) => runs.ownedBy(instance).length > 0 })
    if (recovered > 0) this.database.changed(this)
    return { workers: expired, runs: recovered }
  }

  async heldBy(instance: string): Promise<RunStanding[]> {
    const rows = this.database.runs.ownedBy(instance)
    return rows.filter(({ dueAt }) => dueAt === null).map(standingOf)
  }

  async lockName(name: string): Promise<NameLock | null> {
    const { names } = this.database
    if (names.has(name)) return null
    const lock = { held: true }
    names.set(name, this)
    return {
      release: async () => {
        if (lock.held && names.get(name) === this) names.delete(name)
        lock.held = false
      },
    }
  }

  async getRun(runId: string): Promise<StoredRun | null> {
    const { runs } = this.database
    const row = runs.get(runId)
    const payloads = runs.payloads(runId)
    if (!row || !payloads) return null
    const attributes = runs.attributes(runId)
    return { ...row, ...payloads, tags: [...runs.tags(runId)], attributes }
  }

  async statusesOf(runIds: readonly string[]): Promise<RunStanding[]> {
    const rows = [...new Set(runIds)].map((id) => this.database.runs.get(id))
    return rows.filter((row) => row !== undefined).map(standingOf)
  }

  async errorsOf(runIds: readonly string[]): Promise<{ runId: string; error: string }[]> {
    return [...new Set(runIds)].flatMap((runId) => {
      const error = this.database.runs.payloads(runId)?.error ?? null
      return error === null ? [] : [{ runId, error }]
    })
  }

  async inputsOf(runIds: readonly string[]): Promise<{ runId: string; input: string }[]> {
    return [...new Set(runIds)].flatMap((runId) => {
      const payloads = this.database.runs.payloads(runId)
      return payloads ? [{ runId, input: payloads.input }] : []
    })
  }

  async listRuns(query: RunQuery): Promise<StoredRunPage> {
    return runPage(this.database.runs, query)
  }

  async getHistory(runId: string): Promise<{ records: HistoryRecord[]; waits: Wait[] } | null> {
    const { runs, history, waits } = this.database
    if (!runs.get(runId)) return null
    return { records: history.all(runId), waits: waits.of(runId) }
  }

  async findStranded(): Promise<StrandedRun[]> {
    return strandedRuns(this.database)
  }

  async listWorkers(): Promise<WorkerRow[]> {
    return this.database.workers.all()
  }

  /** Children of one operation, by index. */
  #children({ runId, seq }: { runId: string; seq: number }): (RunRow & { index: number })[] {
    return this.database.runs
      .childrenOf(runId)
      .flatMap((row) => (row.parent?.seq === seq ? [{ ...row, index: row.parent.index }] : []))
      .sort((a, b) => a.index - b.index)
  }
}

function standingOf(row: RunRow): RunStanding {
  const { id, claimKey, status, phase, token, errorCode } = row
  return { runId: id, claimKey, status, phase, token, errorCode }
}

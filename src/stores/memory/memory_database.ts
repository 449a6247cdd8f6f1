import { isInFlight } from '../../core/dispatch.ts'
import type { LockedState, Plan } from '../../core/plan.ts'
import type { WorkerRow } from '../../contracts/store.ts'
import { isSuspectKey } from '../../core/name.ts'
import { orphaned } from '../../core/transition.ts'
import { HistoryTable } from './history_table.ts'
import { InboxTable } from './inbox_table.ts'
import { KeptSignalTable } from './kept_signal_table.ts'
import { RunTable } from './run_table.ts'
import { WaitTable } from './wait_table.ts'
import { WorkerTable } from './worker_table.ts'

/** Something that looks at the database and wants to hear when others have changed it. */
export interface Connection {
  changedByAnother(): void
}

/** The data of one or several memory stores: plain rows in tables, and one clock. */
export class MemoryDatabase {
  readonly runs = new RunTable()
  readonly history = new HistoryTable()
  readonly waits = new WaitTable()
  readonly inbox = new InboxTable()
  readonly kept = new KeptSignalTable()
  readonly workers = new WorkerTable()
  /** Holders of the locks on worker names. */
  readonly names = new Map<string, Connection>()
  #connections = new Set<Connection>()
  #clock: () => number
  #offset = 0

  /** `clock` gives milliseconds UTC; default `Date.now`. */
  constructor(options: { clock?: () => number } = {}) {
    this.#clock = options.clock ?? Date.now
  }

  now(): number {
    return this.#clock() + this.#offset
  }

  advanceClock(ms: number) {
    this.#offset += ms
  }

  connect(connection: Connection) {
    this.#connections.add(connection)
  }

  disconnect(connection: Connection) {
    this.#connections.delete(connection)
    for (const [name, holder] of this.names) if (holder === connection) this.names.delete(name)
  }

  /** Tells every connection but the one that made the change. */
  changed(by?: Connection) {
    for (const connection of this.#connections) if (connection !== by) connection.changedByAnother()
  }

  locked(): LockedState {
    return {
      now: this.now(),
      run: (id) => this.runs.get(id),
      keptSignals: (token) => this.kept.of(token),
      waiters: (token) => this.waits.waiters(token),
      unreadSignals: (runId, after) =>
        this.inbox.above(runId, after).filter((entry) => entry.kind === 'signal'),
      awaitedChildren: (runId) =>
        this.runs
          .childrenOf(runId)
          .filter(({ parent, endedAt }) => parent?.awaited && endedAt === null)
          .map(({ id }) => id),
      hasSignal: (id, token) => this.inbox.hasSignal(id, token) || this.kept.has(id, token),
    }
  }

  /** Writes a plan whose records collide with nothing. */
  apply(plan: Plan) {
    for (const insert of plan.inserts) this.runs.insert(insert)
    for (const update of plan.updates) this.runs.update(update)
    for (const { runId, seqs } of plan.retired) this.history.retire(runId, seqs)
    for (const record of plan.records) this.history.add(record)
    for (const { runId, values } of plan.attributes) this.runs.setAttributes(runId, values)
    for (const { runId, prefix } of plan.removedTags) this.runs.removeTags(runId, prefix)
    for (const { runId, tag } of plan.addedTags) this.runs.addTag(runId, tag)
    for (const runId of plan.cleared) {
      this.waits.clear(runId)
      this.inbox.remove(runId, () => true)
    }
    for (const waiter of plan.closedWaits) this.waits.close(waiter)
    for (const wait of plan.waits) this.waits.put(wait)
    for (const waiter of plan.served) this.waits.serve(waiter)
    for (const { runId, upTo } of plan.taken) this.inbox.remove(runId, ({ no }) => no <= upTo)
    for (const { runId, no } of plan.removed) this.inbox.remove(runId, (entry) => entry.no === no)
    for (const entry of plan.inbox) this.inbox.add(entry)
    for (const signal of plan.usedSignals) this.kept.remove(signal)
    for (const signal of plan.keptSignals) this.kept.add(signal)
  }

  /** Marks live workers that are gone lost, and gives their number. */
  markLost(isGone: (worker: Readonly<WorkerRow>) => boolean): number {
    const hasSuspect = (instance: string) =>
      this.runs
        .ownedBy(instance)
        .some(({ dueAt, claimKey }) => dueAt === null && isSuspectKey(claimKey))
    return this.workers.markLost({ isGone, hasSuspect })
  }

  /** Makes what these instances were running due, or parks it, and gives the number of runs. */
  orphan(instances: readonly string[], params: { suspectFrom: number | null }): number {
    const now = this.now()
    const runs = instances
      .flatMap((instance) => this.runs.ownedBy(instance))
      .filter(({ status, dueAt }) => status === 'running' && dueAt === null)
    for (const run of runs) {
      const isCounted = this.workers.isCounted(run.owner!)
      const besideSuspect = this.workers.hadSuspect(run.owner!)
      const parkUntil = this.#parkUntil(run.id, now)
      this.runs.replace(orphaned(run, { ...params, now, isCounted, besideSuspect, parkUntil }))
    }
    return runs.length
  }

  /** When a run is to be woken that waits for a step in flight; null = it waits for none. */
  #parkUntil(runId: string, now: number): number | null {
    const waits = this.waits.of(runId)
    if (!waits.some(isInFlight)) return null
    const dueTimes = waits.flatMap(({ dueAt }) => dueAt ?? [])
    const isDue = dueTimes.length === 0 || this.inbox.above(runId, 0).length > 0
    return isDue ? now : Math.min(...dueTimes)
  }
}

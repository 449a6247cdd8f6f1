import type { RunStanding, Store } from '../contracts/store.ts'
import type { RunRow } from '../core/run.ts'
import { takenAway } from '../engine/abort_reasons.ts'
import type { Lease } from '../engine/lease.ts'
import type { AbortError } from '../errors.ts'
import type { RunLogger } from '../types/step.ts'

/** What a worker executes, as far as its leases are concerned. */
export interface LeasedRuns {
  /** Runs whose code is at work. */
  executing(): readonly RunRow[]
  /** Ids of the runs that have a slot here, under this claim or an earlier one. */
  occupying(): ReadonlySet<string>
  /** The run has this token now: what is executed or kept of it under a lower one is void, and aborted. */
  discardRun(runId: string, taken: { token: number; reason: AbortError }): void
}

export interface LeaseCheckParams {
  store: Pick<Store, 'heldBy' | 'statusesOf'>
  lease: Pick<Lease, 'owner'>
  runs: LeasedRuns
  /** For how long the answer that gives this process a run may be under way, in ms. */
  leaseMs: number
  /** Hands a run back uncounted. */
  release: (run: RunStanding) => Promise<unknown>
  log: Pick<RunLogger, 'warn'>
  /** Ms of a clock that never goes back. Default the one of the process. */
  monotonic?: () => number
}

interface Unknown {
  token: number
  since: number
}

/**
 * Compares what the store holds for this process with what it executes. What was taken away is discarded, so that its
 * steps stop. What is held and not executed is released: nobody else would ever take it (promise P4). An answer may be
 * under way that gives it a slot, for a whole lease at most.
 */
export class LeaseCheck {
  #params: LeaseCheckParams
  #unknown = new Map<string, Unknown>()

  constructor(params: LeaseCheckParams) {
    this.#params = params
  }

  async runOnce(): Promise<void> {
    const { store, lease, runs } = this.#params
    const executing = runs.executing()
    const { owner } = lease
    const held = await store.heldBy(owner)
    if (lease.owner !== owner) return
    await this.#discardTaken(executing, held)
    await this.#releaseUnknown(held)
  }

  async #discardTaken(executing: readonly RunRow[], held: readonly RunStanding[]): Promise<void> {
    const tokens = new Map(held.map(({ runId, token }) => [runId, token]))
    const doubtful = executing.filter(({ id, token }) => tokens.get(id) !== token)
    if (doubtful.length === 0) return
    const { store, runs } = this.#params
    const standings = await store.statusesOf(doubtful.map(({ id }) => id))
    const still = new Map(runs.executing().map((row) => [row.id, row]))
    for (const standing of standings) {
      const { runId, token } = standing
      const row = still.get(runId)
      if (row) runs.discardRun(runId, { token, reason: takenAway(row, standing) })
    }
  }

  async #releaseUnknown(held: readonly RunStanding[]): Promise<void> {
    const { runs, leaseMs, release, log, monotonic = () => performance.now() } = this.#params
    const now = monotonic()
    const before = this.#unknown
    const occupying = runs.occupying()
    this.#unknown = new Map()
    for (const run of held) {
      const { runId, token } = run
      if (occupying.has(runId)) continue
      const seen = before.get(runId)
      const since = seen?.token === token ? seen.since : now
      this.#unknown.set(runId, { token, since })
      if (now - since < leaseMs) continue
      try {
        await release(run)
        log.warn(`Released run "${runId}", which this worker held without executing it`)
      } catch (err) {
        // It keeps no other run from its release, and is not tried again at every look.
        this.#unknown.set(runId, { token, since: now })
        log.warn(
          { err },
          `Run "${runId}", which this worker holds without executing it, could not be released; trying again later`
        )
      }
    }
  }
}

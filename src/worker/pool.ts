import { clearTimeout, setTimeout } from 'node:timers'
import { setTimeout as delay } from 'node:timers/promises'
import type { LoadedRun, Store } from '../contracts/store.ts'
import { isSuspectKey } from '../core/name.ts'
import { isBeyondCap } from '../core/recovery.ts'
import type { RunRow } from '../core/run.ts'
import { serializeError } from '../core/serialized_error.ts'
import { leaseLost, stopping, takenAway, turnOver } from '../engine/abort_reasons.ts'
import { inCleanContext } from '../engine/clean_context.ts'
import type { EngineContext, Slot } from '../engine/engine_context.ts'
import type { Lease } from '../engine/lease.ts'
import type { Execution, ExecutionParams, Resident } from '../engine/execution.ts'
import { Follower } from '../engine/follower.ts'
import { RunWriter, type TurnEnding } from '../engine/run_writer.ts'
import { TurnRunner } from '../engine/turn_runner.ts'
import { Unwinder } from '../engine/unwinder.ts'
import type { AbortError } from '../errors.ts'
import type { LeasedRuns } from './lease_check.ts'
import { Residents } from './residents.ts'

interface PoolParams {
  context: EngineContext
  store: Store
  lease: Lease
  /** Runs at once. */
  concurrency: number
  /** Called when a slot has become free. */
  onFree: () => void
}

const LOAD_RETRY_MS = 200
/** How long aborted steps have to return before their runs are handed back all the same. */
const ABORT_GRACE_MS = 5_000
/** How long handing them back may take. */
const RELEASE_GRACE_MS = 1_000

/** The runs that this process executes, each in a slot. A slot is free again when no code of its run is at work. */
export class RunPool implements LeasedRuns {
  #params: PoolParams
  #execution: ExecutionParams
  #running = new Map<string, Execution>()
  /** Rows and not ids: a run may come again before the last code of its earlier execution has ended. */
  #occupants = new Set<RunRow>()
  /** The rows of the newest claims, by id, without those that were taken away since. */
  #held = new Map<string, RunRow>()
  #residents: Residents
  #occupied = 0
  #isDraining = false
  /** Resolves when another run has left its execution, or its slot. */
  #left = Promise.withResolvers<void>()

  constructor(params: PoolParams) {
    this.#params = params
    const { lease, store, context } = params
    const { commits, news, events, registry, routing, dispatcher } = context
    const { options, log, naming, inDevelopment, stalled } = context
    const parts = { store, commits, news, events, registry, routing, dispatcher, options, naming }
    this.#execution = { ...parts, inDevelopment, stalled, lease, log }
    // A run kept in memory goes on with the body it began with: in development, the code may have changed since.
    const runs = inDevelopment ? 0 : options.residentRuns
    this.#residents = new Residents({ runs, bytes: options.residentBytes })
  }

  get free(): number {
    return this.#isDraining ? 0 : Math.max(0, this.#params.concurrency - this.#occupied)
  }

  /** Whether a run is executed here that may be what kills its workers. */
  get hasSuspect(): boolean {
    return [...this.#occupants].some(({ claimKey }) => isSuspectKey(claimKey))
  }

  get isEmpty(): boolean {
    return this.#occupied === 0
  }

  /** Whether the run's end will be told by this process. */
  executes(runId: string): boolean {
    return this.#running.has(runId)
  }

  /** Keeps a slot for a run that is about to be stored under this process's lease. */
  reserve(): Slot {
    this.#occupied++
    return {
      owner: this.#params.lease.owner,
      use: (row, input) => {
        this.#occupy(row)
        const nothing = { error: null, history: [], undone: [], waits: [], inbox: [] }
        const loaded = { runId: row.id, input, now: row.createdAt, ...nothing }
        void inCleanContext(() => this.#supervise(row, loaded, null))
      },
      giveBack: () => this.#freeSlot(null),
    }
  }

  /** Executes claimed runs. Resolves when their histories are loaded. */
  async execute(rows: readonly RunRow[]): Promise<void> {
    this.#occupied += rows.length
    const kept = new Map<string, Resident>()
    for (const row of rows) {
      // Claimed again here, before this process has heard that what executes it still has lost it.
      const other = this.#running.get(row.id)
      other?.discard(takenAway(other.row, row))
      this.#occupy(row)
      const resident = this.#residents.take(row.id)
      if (row.phase === 'body' && resident?.continues(row)) kept.set(row.id, resident)
      else resident?.discard(takenAway(resident.row, row))
    }
    const loaded = await this.#load(rows, kept)
    for (const row of rows) {
      const run = loaded.get(row.id)
      const resident = kept.get(row.id) ?? null
      void this.#supervise(row, run ?? null, resident)
    }
  }

  executing(): RunRow[] {
    return [...this.#running.values()].map(({ row }) => row)
  }

  occupying(): ReadonlySet<string> {
    return new Set([...this.#occupants].map(({ id }) => id))
  }

  /** News of it may be late, and the run may have been claimed here again under a later token: that lease holds. */
  discardRun(runId: string, { token, reason }: { token: number; reason: AbortError }): void {
    const isVoid = (row: RunRow | undefined) => row !== undefined && row.token < token
    if (isVoid(this.#held.get(runId))) this.#held.delete(runId)
    const running = this.#running.get(runId)
    if (isVoid(running?.row)) running?.discard(reason)
    if (isVoid(this.#residents.get(runId)?.row)) this.#residents.take(runId)?.discard(reason)
  }

  /** The lease is gone: every turn of this process is void. */
  discardAll(reason: AbortError): void {
    for (const runner of this.#running.values()) runner.discard(reason)
    this.#residents.clear(reason)
  }

  /** No further run and no further step begins. What is claimed and cannot be read is handed back, and not asked for again. */
  close(): void {
    this.#isDraining = true
    this.#residents.clear(stopping())
    for (const runner of this.#running.values()) runner.drain()
  }

  /**
   * Takes no further runs, lets steps in flight finish for up to `drainMs`, then aborts them, and hands back each run
   * whose steps have returned. A few seconds later those go back too whose steps are still at work.
   */
  async drain(drainMs: number): Promise<void> {
    this.close()
    if (await this.#within(drainMs, () => this.isEmpty)) return
    for (const runner of this.#running.values()) runner.abort(stopping())
    if (await this.#within(ABORT_GRACE_MS, () => this.isEmpty)) return
    for (const runner of this.#running.values()) runner.release(stopping())
    await this.#within(RELEASE_GRACE_MS, () => this.#running.size === 0)
    this.discardAll(stopping())
  }

  async #within(ms: number, holds: () => boolean): Promise<boolean> {
    const timer = new AbortController()
    const late = delay(ms, null, { signal: timer.signal }).catch(() => {})
    let isLate = false
    void late.then(() => (isLate = true))
    while (!holds() && !isLate) {
      this.#left = Promise.withResolvers()
      await Promise.race([this.#left.promise, late])
    }
    timer.abort()
    return holds()
  }

  /** What is claimed is this process's to execute: reading it is tried again for as long as the lease holds. */
  async #load(
    rows: readonly RunRow[],
    kept: ReadonlyMap<string, Resident>
  ): Promise<Map<string, LoadedRun>> {
    const { context, lease, store } = this.#params
    const requests = rows.map((row) => {
      const resident = kept.get(row.id)
      const inboxAfter = resident?.inboxLoaded ?? 0
      return { runId: row.id, resident: resident !== undefined, inboxAfter }
    })
    const { owner } = lease
    for (;;) {
      try {
        const loaded = await store.load(requests)
        return new Map(loaded.map((run) => [run.runId, run]))
      } catch (err) {
        context.log.warn({ err }, 'Claimed runs could not be loaded; trying again')
        await delay(LOAD_RETRY_MS)
        if (lease.owner !== owner || this.#isDraining) return new Map()
      }
    }
  }

  async #supervise(
    row: RunRow,
    loaded: LoadedRun | null,
    resident: Resident | null
  ): Promise<void> {
    const { log } = this.#params.context
    try {
      if (loaded && this.#isHeld(row)) await this.#executePhases(row, loaded, resident)
      else await this.#handBack(row, resident)
    } catch (err) {
      log.error({ err, runId: row.id }, 'A run could not be executed; it is offered again later')
      await this.#block(row, { loaded, error: err })
    }
    this.#freeSlot(row)
  }

  async #block(row: RunRow, why: { loaded: LoadedRun | null; error: unknown }): Promise<void> {
    const writer = new RunWriter(row, this.#params.context)
    if (why.loaded) writer.clock.read(why.loaded.now)
    try {
      await writer.block({}, serializeError(why.error))
    } catch (err) {
      this.#params.context.log.error(
        { err, runId: row.id },
        'The run could not be blocked either: it stays with this worker without being executed, and is handed back ' +
          'after a lease or when the worker stops'
      )
    }
  }

  /** Not begun here: it could not be read, or was taken away meanwhile. Uncounted. */
  async #handBack(row: RunRow, resident: Resident | null): Promise<void> {
    resident?.discard(this.#isDraining ? stopping() : leaseLost())
    await new RunWriter(row, this.#params.context).write({}, { kind: 'release' })
  }

  /** A run that is over in one phase may go on in another under the same lease. */
  async #executePhases(row: RunRow, loaded: LoadedRun, resident: Resident | null): Promise<void> {
    const params = this.#execution
    const { options, deadLetters } = this.#params.context
    if (isBeyondCap(row, options.maxRecoveryAttempts)) return deadLetters.bury(row, loaded)
    this.#warnOfSuspect(row)
    let execution: Execution = resident ?? executionOf(row, params)
    const begun = [execution]
    try {
      let ending = await this.#run(execution, { row, loaded })
      while (ending === 'unwinding') {
        const next = execution.row
        const again = await this.#load([next], new Map())
        const reloaded = again.get(next.id)
        if (!reloaded || !this.#isHeld(row)) return this.#handBack(next, null)
        execution = executionOf(next, params)
        begun.push(execution)
        ending = await this.#run(execution, { row: next, loaded: reloaded })
      }
      const kept = ending === 'suspended' && !this.#isDraining ? execution.resident : null
      if (kept) this.#residents.keep(kept)
      else execution.discard(afterwards(ending))
    } catch (error) {
      execution.discard(turnOver('The run could not be executed'))
      throw error
    } finally {
      await this.#untilQuiet(row, begun)
    }
  }

  /** A step that does not heed its abort may outlive its run, and keeps the slot: what it does is work like any other. */
  async #untilQuiet({ id, workflow }: RunRow, begun: readonly Execution[]): Promise<void> {
    const { options, log } = this.#params.context
    const warning = setTimeout(() => {
      log.warn(
        { runId: id, workflow },
        `A step of ${workflow} ${id} has not returned ${options.stallMs} ms after the run had left this worker: it keeps ` +
          'a slot until it returns. Let it heed its signal'
      )
    }, options.stallMs)
    warning.unref()
    await Promise.all(begun.map((each) => each.quiet()))
    clearTimeout(warning)
  }

  /** Said first: if it ends this process too, nothing can be said after. */
  #warnOfSuspect({ id, workflow, claimKey, recoveryAttempts }: RunRow): void {
    if (!isSuspectKey(claimKey) || recoveryAttempts < 2) return
    this.#params.context.log.warn(
      { runId: id, workflow, recoveryAttempts },
      `${workflow} ${id} was lost with its worker ${recoveryAttempts} times: it may be what ends them. ` +
        'It is executed with no other such run beside it'
    )
  }

  async #run(
    execution: Execution,
    { row, loaded }: { row: RunRow; loaded: LoadedRun }
  ): Promise<TurnEnding> {
    this.#running.set(row.id, execution)
    if (this.#isDraining) execution.drain()
    try {
      return await execution.run(row, loaded)
    } finally {
      if (this.#running.get(row.id) === execution) this.#running.delete(row.id)
      this.#left.resolve()
    }
  }

  #occupy(row: RunRow): void {
    this.#occupants.add(row)
    this.#held.set(row.id, row)
  }

  /** Whether what was claimed is still this process's, as far as it has heard. */
  #isHeld(row: RunRow): boolean {
    return this.#held.get(row.id) === row && row.owner === this.#params.lease.owner
  }

  #freeSlot(row: RunRow | null): void {
    this.#occupied--
    if (row) {
      this.#occupants.delete(row)
      if (this.#held.get(row.id) === row) this.#held.delete(row.id)
    }
    this.#left.resolve()
    this.#params.onFree()
  }
}

/** For what is at work of a run that has left the hands of its execution. */
function afterwards(ending: TurnEnding): AbortError {
  if (ending === 'lost') return leaseLost()
  return ending === 'released' ? stopping() : turnOver(`The run is ${ending}`)
}

function executionOf(row: RunRow, params: ExecutionParams): Execution {
  switch (row.phase) {
    case 'body':
      return new TurnRunner(row, params)
    case 'unwinding':
      return new Unwinder(row, params)
    case 'following':
      return new Follower(row, params)
  }
}

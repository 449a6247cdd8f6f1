import { setTimeout as delay } from 'node:timers/promises'
import type { LoadedRun } from '../contracts/store.ts'
import type { RunRow } from '../core/run.ts'
import type { EngineContext, Slot } from '../engine/engine_context.ts'
import type { Lease } from '../engine/lease.ts'
import { type TurnEnding, TurnRunner } from '../engine/turn_runner.ts'
import { Residents } from './residents.ts'

interface PoolParams {
  context: EngineContext
  lease: Lease
  /** Runs at once. */
  concurrency: number
  /** Called when a slot has become free. */
  onFree: () => void
}

const LOAD_RETRY_MS = 200
const RELEASE_GRACE_MS = 5_000

/** The runs that this process executes, each in a slot. A slot is free again when no code of its run is at work. */
export class RunPool {
  #params: PoolParams
  #running = new Map<string, TurnRunner>()
  #residents: Residents
  #occupied = 0
  #isDraining = false
  #emptied = Promise.withResolvers<void>()

  constructor(params: PoolParams) {
    this.#params = params
    const { options, inDevelopment } = params.context
    // A run kept in memory goes on with the body it began with: in development, the code may have changed since.
    const runs = inDevelopment ? 0 : options.residentRuns
    this.#residents = new Residents({ runs, bytes: options.residentBytes })
  }

  get free(): number {
    return this.#isDraining ? 0 : Math.max(0, this.#params.concurrency - this.#occupied)
  }

  get isEmpty(): boolean {
    return this.#occupied === 0
  }

  /** Keeps a slot for a run that is about to be stored under this process's lease. */
  reserve(): Slot {
    this.#occupied++
    return {
      owner: this.#params.lease.owner,
      use: (row, input) => {
        const nothing = { history: [], waits: [], inbox: [] }
        void this.#supervise(row, { runId: row.id, input, now: row.createdAt, ...nothing }, null)
      },
      giveBack: () => this.#freeSlot(),
    }
  }

  /** Executes claimed runs. Resolves when their histories are loaded. */
  async execute(rows: readonly RunRow[]): Promise<void> {
    this.#occupied += rows.length
    const kept = new Map<string, TurnRunner>()
    for (const row of rows) {
      const resident = this.#residents.take(row.id)
      if (resident?.continues(row)) kept.set(row.id, resident)
      else resident?.discard(new Error('Another worker has had the run'))
    }
    const loaded = await this.#load(rows, kept)
    for (const row of rows) {
      const run = loaded.get(row.id)
      if (run) void this.#supervise(row, run, kept.get(row.id) ?? null)
      else this.#freeSlot()
    }
  }

  /** The lease is gone: every turn of this process is void. */
  discardAll(reason: Error): void {
    for (const runner of this.#running.values()) runner.discard(reason)
    this.#residents.clear(reason)
  }

  /**
   * Takes no further runs, lets steps in flight finish for up to `drainMs`, then aborts them, and hands back what has
   * not ended. Resolves when nothing is at work, or a few seconds after the steps were aborted.
   */
  async drain(drainMs: number): Promise<void> {
    this.#isDraining = true
    const reason = new Error('The worker is shutting down')
    this.#residents.clear(reason)
    for (const runner of this.#running.values()) runner.drain()
    if (await this.#isEmptyWithin(drainMs)) return
    for (const runner of this.#running.values()) runner.release(reason)
    if (await this.#isEmptyWithin(RELEASE_GRACE_MS)) return
    this.discardAll(reason)
  }

  async #isEmptyWithin(ms: number): Promise<boolean> {
    if (this.isEmpty) return true
    this.#emptied = Promise.withResolvers()
    const timer = new AbortController()
    const late = delay(ms, null, { signal: timer.signal }).catch(() => {})
    await Promise.race([this.#emptied.promise, late])
    timer.abort()
    return this.isEmpty
  }

  /** What is claimed is this process's to execute: reading it is tried again for as long as the lease holds. */
  async #load(
    rows: readonly RunRow[],
    kept: ReadonlyMap<string, TurnRunner>
  ): Promise<Map<string, LoadedRun>> {
    const { context, lease } = this.#params
    const requests = rows.map((row) => {
      const resident = kept.get(row.id)
      const inboxAfter = resident?.inboxLoaded ?? 0
      return { runId: row.id, resident: resident !== undefined, inboxAfter }
    })
    const { owner } = lease
    for (;;) {
      try {
        const store = await context.store()
        const loaded = await store.load(requests)
        return new Map(loaded.map((run) => [run.runId, run]))
      } catch (err) {
        context.log.warn({ err }, 'Claimed runs could not be loaded; trying again')
        await delay(LOAD_RETRY_MS)
        if (lease.owner !== owner || this.#isDraining) return new Map()
      }
    }
  }

  async #supervise(row: RunRow, loaded: LoadedRun, resident: TurnRunner | null): Promise<void> {
    const { log } = this.#params.context
    const runner = resident ?? (await this.#newRunner(row))
    this.#running.set(row.id, runner)
    if (this.#isDraining) runner.drain()
    let ending: TurnEnding = 'lost'
    try {
      ending = await this.#run(runner, { row, loaded, isResident: resident !== null })
    } catch (err) {
      log.error({ err, runId: row.id }, 'A run could not be executed; it is taken up again later')
    }
    if (this.#running.get(row.id) === runner) this.#running.delete(row.id)
    if (ending === 'suspended' && !this.#isDraining) this.#residents.keep(runner)
    else runner.discard(new Error(`The run is ${ending}`))
    await runner.quiet()
    this.#freeSlot()
  }

  async #run(
    runner: TurnRunner,
    { row, loaded, isResident }: { row: RunRow; loaded: LoadedRun; isResident: boolean }
  ): Promise<TurnEnding> {
    if (!isResident) {
      const unable = await runner.begin(loaded)
      if (unable) return runner.block(unable)
    }
    return runner.run(row, loaded)
  }

  async #newRunner(row: RunRow): Promise<TurnRunner> {
    const { context, lease } = this.#params
    const { commits, news, events, registry, options, log, naming, inDevelopment } = context
    const store = await context.store()
    const parts = { store, commits, news, events, registry, options, naming, inDevelopment }
    return new TurnRunner(row, { ...parts, lease, log })
  }

  #freeSlot(): void {
    this.#occupied--
    if (this.isEmpty) this.#emptied.resolve()
    this.#params.onFree()
  }
}

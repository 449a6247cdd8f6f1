import { hostname } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import type { NameLock, Store } from '../contracts/store.ts'
import type { FlushNews } from '../core/change_set.ts'
import { claimKey, ordinaryKey, suspectKey } from '../core/name.ts'
import { suspectFrom } from '../core/recovery.ts'
import type { WorkflowEngine } from '../engine/engine.ts'
import type { EngineContext, Slot, Starter } from '../engine/engine_context.ts'
import type { WorkerDescriptor } from '../engine/worker_descriptor.ts'
import { E_WORKER_NAME_TAKEN } from '../errors.ts'
import { type MaintenanceTask, recovery } from '../maintenance/recovery.ts'
import { RouteCheck } from '../maintenance/route_check.ts'
import { timeouts } from '../maintenance/timeouts.ts'
import { Loop } from './loop.ts'
import { RunPool } from './pool.ts'
import { WorkerSession } from './session.ts'
import { attributeUnhandledRejections } from './unhandled_rejections.ts'
import { Watchdog } from './watchdog.ts'
import type { WorkerDescription } from './worker_description.ts'

export interface WorkerParams {
  engine: WorkflowEngine
  /** Stable name; default from the options, else `<hostname>:<first free number>`. */
  name?: string | undefined
  /** Default from the options. */
  concurrency?: number | undefined
  /** Ends the process when its event loop hangs; not for development, debuggers and tests. Default false. */
  watchdog?: boolean | undefined
  /** Whether runs that this process loses count as recoveries; false under the development server. Default true. */
  isCounted?: boolean | undefined
  /** How long after its start a failure route that nobody serves is looked at again and reported, in ms. Default 30 s. */
  routeRecheckMs?: number | undefined
}

const MAX_CLAIM = 100
const RETRY_MS = 500
const NAMES_TRIED = 1_000
/** Hints that something has changed come often while others work: upkeep looks at most this often for them. */
const UPKEEP_PAUSE_MS = 250

/** Executes runs: claims what is due, renews its lease, recovers what others have lost. */
export class DurableWorker implements Starter {
  #params: WorkerParams
  #context: EngineContext
  #claimKeys: readonly string[] | null = null
  #hasBacklog = true
  /** Whether the last look at suspects found one: there may be more. */
  #hasSuspects = false
  #suspectsSoughtAt = -Infinity
  #pauseMs = 0
  #parts: Parts | null = null
  #stopping: Promise<void> | null = null

  constructor(params: WorkerParams) {
    this.#params = params
    this.#context = params.engine.context
    this.#pauseMs = this.#context.options.pollMs
  }

  /** Discovers workflows, takes the lock on its name, and begins to claim. */
  async start(): Promise<void> {
    const context = this.#context
    const store = await context.store()
    await context.discover()
    await context.routing.resolveAll()
    const { name, lock } = await this.#lockName(store)
    const { leaseMs, hangMs, maxRecoveryAttempts: cap } = context.options
    const session = new WorkerSession({
      ...{ store, name, lock, leaseMs, log: context.log },
      ...{ suspectFrom: suspectFrom(cap), isCounted: this.#params.isCounted ?? true },
      descriptor: () => JSON.stringify(this.#descriptor()),
      onLost: () => {
        context.log.warn('The lease of this worker was recovered by others: its turns are void')
        pool.discardAll(new Error('The lease of this worker was recovered by others'))
      },
    })
    const onError = (err: unknown) => context.log.warn({ err }, 'A pass has failed; trying again')
    const claims = new Loop({ pass: () => this.#claim(), retryMs: RETRY_MS, onError })
    const pool = new RunPool({
      ...{ context, store, lease: session },
      concurrency: this.#concurrency,
      onFree: () => {
        // Slots become free in groups, with the flush that ends their runs: one claim fills them all.
        if (this.#hasBacklog || this.#hasSuspects) setImmediate(() => claims.trigger())
      },
      bury: (row, loaded) => this.#params.engine.bury(row, loaded),
    })
    const recoveries = recovery({
      recover: () => this.#params.engine.recoverIncomplete(),
      ...{ leaseMs, healthyMs: () => session.healthyMs },
      onRecovered: ({ workers, runs }) => {
        context.log.warn(`Recovered ${runs} runs of ${workers} workers that fell silent`)
        this.#suspectsSoughtAt = -Infinity
        claims.trigger()
      },
    })
    const sweeps = timeouts({
      findOverdue: (limit) => store.findOverdue(limit),
      cancel: (runId) => this.#params.engine.timeOut(runId),
      intervalMs: context.options.pollMs,
    })
    const revoked: MaintenanceTask = {
      name: 'revoked runs',
      intervalMs: context.options.idlePollMs,
      runOnce: () => pool.discardRevoked(),
    }
    const loopOf = ({ runOnce, intervalMs }: MaintenanceTask) =>
      new Loop({ pass: () => runOnce().then(() => intervalMs), retryMs: RETRY_MS, onError })
    const upkeep = [recoveries, sweeps, revoked].map(loopOf)
    const check = new RouteCheck({
      find: () => this.#params.engine.unservedOnErrorRoutes(),
      warn: (message) => context.log.warn(message),
      recheckMs: this.#params.routeRecheckMs,
    })
    const routes = new Loop({ pass: () => check.runOnce(), retryMs: RETRY_MS, onError })
    const unsubscribe = [
      context.news.onDue((news) => this.#onDue(news)),
      context.news.onAnything(() => {
        claims.trigger()
        for (const loop of upkeep) loop.within(UPKEEP_PAUSE_MS)
      }),
      context.news.onRevoked((runId) => pool.discardRun(runId)),
      context.registry.onChange(() => this.#onRegistered()),
      attributeUnhandledRejections(),
    ]
    const watchdog = this.#params.watchdog ? new Watchdog(hangMs) : null
    const startedAt = performance.now()
    this.#parts = {
      name,
      store,
      session,
      pool,
      claims,
      upkeep,
      routes,
      unsubscribe,
      watchdog,
      startedAt,
    }
    this.#warnOfLowCap()
    await session.start()
    await store.offerBlocked(this.#keys())
    context.starter = this
    claims.start()
    for (const loop of [...upkeep, routes]) loop.start()
  }

  /** What it is. Once it has been started. */
  get description(): WorkerDescription {
    const { name, store } = this.#started()
    const { registry, options } = this.#context
    return {
      name,
      pid: process.pid,
      workflows: registry.workflows().map((workflow) => `${workflow.name}@${workflow.version}`),
      namespaces: options.namespaces,
      store: store.description,
      concurrency: this.#concurrency,
    }
  }

  /**
   * After the claim under way: whether nothing is due and nothing is executed here. `dueIn`: ms until something is
   * due; null = nothing has a due time.
   */
  async standing(): Promise<{ isIdle: boolean; dueIn: number | null }> {
    const { store, pool, claims } = this.#started()
    while (!claims.isAtRest) await delay(10)
    const dueIn = await store.nextDueIn(this.#keys())
    return { isIdle: dueIn !== 0 && claims.isAtRest && pool.isEmpty, dueIn }
  }

  /** Resolves when nothing is due and nothing is executed here. */
  async whenIdle(): Promise<void> {
    for (;;) {
      const { store, pool, claims } = this.#started()
      await this.#context.commits.idle()
      const dueIn = await store.nextDueIn(this.#keys().flatMap((key) => [key, suspectKey(key)]))
      // Read after the answer: what a claim under way has taken is no longer due, and not yet in the pool.
      if (dueIn !== 0 && claims.isAtRest && pool.isEmpty) return
      if (dueIn === 0) claims.trigger()
      await delay(10)
    }
  }

  /**
   * Stops claiming, lets steps finish for up to `drainMs`, hands the rest back uncounted, and keeps its lease until
   * that is done. Idempotent.
   */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop()
    return this.#stopping
  }

  offer(key: string): Slot | null {
    const parts = this.#parts
    if (!parts || this.#hasBacklog || !parts.session.isHeld || parts.pool.free === 0) return null
    return this.#keys().includes(key) ? parts.pool.reserve() : null
  }

  executes(runId: string): boolean {
    return this.#parts?.pool.executes(runId) ?? false
  }

  async #stop(): Promise<void> {
    const parts = this.#parts
    if (!parts) return
    const context = this.#context
    if (context.starter === this) context.starter = null
    // First: a claim under way may be waiting for what it cannot read.
    parts.pool.close(new Error('The worker is shutting down'))
    await Promise.all([parts.claims, parts.routes, ...parts.upkeep].map((loop) => loop.stop()))
    await parts.pool.drain(context.options.drainMs)
    await context.commits.idle()
    await parts.session.stop()
    for (const stop of parts.unsubscribe) stop()
    await parts.watchdog?.stop()
    this.#parts = null
  }

  #started(): Parts {
    if (!this.#parts) throw new Error('The worker has not been started')
    return this.#parts
  }

  /** One pass of claiming. */
  async #claim(): Promise<number> {
    const { store, session, pool } = this.#started()
    const { pollMs, idlePollMs } = this.#context.options
    const claimKeys = this.#keys()
    if (claimKeys.length === 0 || !session.isHeld) return pollMs
    if (pool.free === 0) {
      this.#hasBacklog ||= await this.#isAnyDue()
      return idlePollMs
    }
    const kept = this.#hasBacklog && this.#isTimeForSuspects ? 1 : 0
    const limit = Math.min(pool.free - kept, MAX_CLAIM)
    const rows = limit > 0 ? await store.claim({ owner: session.owner, claimKeys, limit }) : []
    // As many as it has slots may be all there are: what is started here is leased at once only where nothing waits.
    this.#hasBacklog = rows.length === limit && (await this.#isAnyDue())
    if (rows.length > 0) await pool.execute(rows)
    const found = rows.length + (this.#isTimeForSuspects ? await this.#takeSuspect() : 0)
    if (this.#hasBacklog) return pool.free > 0 ? 0 : idlePollMs
    const dueIn = await store.nextDueIn(claimKeys)
    this.#pauseMs = found > 0 ? pollMs : Math.min(this.#pauseMs * 2, idlePollMs)
    return Math.min(Math.max(dueIn ?? Infinity, 1), this.#pauseMs)
  }

  async #isAnyDue(): Promise<boolean> {
    return (await this.#started().store.nextDueIn(this.#keys())) === 0
  }

  /**
   * A run that was lost before is executed with no other such run beside it: if it is what kills its workers, nobody
   * else is counted for it again and again.
   */
  async #takeSuspect(): Promise<number> {
    const { store, session, pool } = this.#started()
    const claimKeys = this.#keys().map(suspectKey)
    const rows = await store.claim({ owner: session.owner, claimKeys, limit: 1 })
    this.#hasSuspects = rows.length > 0
    this.#suspectsSoughtAt = performance.now()
    if (rows.length > 0) await pool.execute(rows)
    return rows.length
  }

  /**
   * They are rare: one look in a while finds the first, and each that has gone makes room for the next. While others
   * wait for slots, a suspect gets one now and then, and not at once when the worker starts: one that kills every
   * process would else keep them waiting for ever.
   */
  get #isTimeForSuspects(): boolean {
    const { pool, startedAt } = this.#started()
    if (pool.hasSuspect || pool.free === 0) return false
    const { pollMs } = this.#context.options
    const sought = this.#suspectsSoughtAt
    if (this.#hasBacklog) return performance.now() - Math.max(sought, startedAt) >= pollMs
    return this.#hasSuspects || performance.now() - sought >= pollMs
  }

  /** With less, a run that only happened to be beside one that kills its process may be given up with it. */
  #warnOfLowCap(): void {
    const { maxRecoveryAttempts: cap } = this.#context.options
    if (cap !== null && cap < 3)
      this.#context.log.warn(
        `maxRecoveryAttempts is ${cap}: below 3, healthy runs may end dead beside one that kills its process`
      )
  }

  #onDue({ due, dueIn }: FlushNews): void {
    const keys = this.#keys()
    if ([...due].some((key) => keys.includes(ordinaryKey(key)))) this.#parts?.claims.trigger()
    if (dueIn !== null) this.#parts?.claims.within(dueIn)
  }

  #onRegistered(): void {
    this.#claimKeys = null
    const parts = this.#parts
    if (!parts) return
    parts.claims.trigger()
    const descriptor = JSON.stringify(this.#descriptor())
    parts.store.describeWorker(parts.session.owner, descriptor).catch((err) => {
      this.#context.log.warn({ err }, 'The worker could not announce a new workflow')
    })
  }

  #keys(): readonly string[] {
    const { registry, options } = this.#context
    this.#claimKeys ??= options.namespaces.flatMap((namespace) =>
      registry.workflows().map(({ name, version }) => claimKey(namespace, name, version))
    )
    return this.#claimKeys
  }

  #descriptor(): WorkerDescriptor {
    const concurrency = this.#concurrency
    return { claimKeys: this.#keys(), concurrency, pid: process.pid, host: hostname() }
  }

  get #concurrency(): number {
    return this.#params.concurrency ?? this.#context.options.worker.concurrency
  }

  /** A name that was given belongs to one live process at a time; else the first free one of this host is taken. */
  async #lockName(store: Store): Promise<{ name: string; lock: NameLock }> {
    const given = this.#params.name ?? this.#context.options.worker.name
    if (given !== null) {
      const lock = await store.lockName(given)
      if (lock) return { name: given, lock }
      throw new E_WORKER_NAME_TAKEN([given])
    }
    const host = hostname().replaceAll(/\s/g, '-')
    for (let number = 1; number <= NAMES_TRIED; number++) {
      const name = `${host}:${number}`
      const lock = await store.lockName(name)
      if (lock) return { name, lock }
    }
    throw new E_WORKER_NAME_TAKEN([`${host}:1 to ${host}:${NAMES_TRIED}`])
  }
}

interface Parts {
  name: string
  store: Store
  session: WorkerSession
  pool: RunPool
  claims: Loop
  /** Recovery, time-outs, runs taken away. */
  upkeep: Loop[]
  /** The check of failure routes. */
  routes: Loop
  unsubscribe: (() => void)[]
  watchdog: Watchdog | null
  /** Reading of the monotonic clock. */
  startedAt: number
}

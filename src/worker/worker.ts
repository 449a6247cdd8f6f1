import { hostname } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import type { Store } from '../contracts/store.ts'
import { claimKey, suspectKey } from '../core/name.ts'
import { suspectFrom } from '../core/recovery.ts'
import { cancelled, leaseLost } from '../engine/abort_reasons.ts'
import { internalsOf, type WorkflowEngine } from '../engine/engine.ts'
import type { EngineContext, Slot, Starter } from '../engine/engine_context.ts'
import { changeSet } from '../engine/run_writer.ts'
import { unservedDeadLetters, unservedRoutes } from '../engine/unserved_routes.ts'
import type { WorkerDescriptor } from '../engine/worker_descriptor.ts'
import { type MaintenanceTask, recovery } from '../maintenance/recovery.ts'
import { RouteCheck } from '../maintenance/route_check.ts'
import { timeouts } from '../maintenance/timeouts.ts'
import { Claims } from './claims.ts'
import { LeaseCheck } from './lease_check.ts'
import { Loop, type Pass } from './loop.ts'
import { RunPool } from './pool.ts'
import { WorkerSession } from './session.ts'
import { attributeUnhandledRejections } from './unhandled_rejections.ts'
import { Watchdog } from './watchdog.ts'
import type { WorkerDescription } from './worker_description.ts'
import { lockWorkerName } from './worker_name.ts'

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
  /** Told what it is when it has been announced, before it takes anything up. */
  onStarted?: ((worker: WorkerDescription) => void) | undefined
}

const RETRY_MS = 500
/** How long a stop waits for its last writes while the database does not answer. */
const COMMIT_GRACE_MS = 1_000
/** Hints that something has changed come often while others work: upkeep looks at most this often for them. */
const UPKEEP_PAUSE_MS = 250

/** Executes runs: claims what is due, renews its lease, recovers what others have lost. */
export class DurableWorker implements Starter {
  #params: WorkerParams
  #context: EngineContext
  #claimKeys: readonly string[] | null = null
  #parts: Parts | null = null
  #starting: Promise<void> | null = null
  #stopping: Promise<void> | null = null

  constructor(params: WorkerParams) {
    this.#params = params
    this.#context = internalsOf(params.engine)
  }

  /**
   * Discovers workflows, takes the lock on its name, and begins to claim. Nothing is left of a start that fails. After
   * `stop` it does nothing.
   */
  start(): Promise<void> {
    this.#starting ??= this.#stopping ?? this.#start()
    return this.#starting
  }

  async #start(): Promise<void> {
    const context = this.#context
    const store = await context.store()
    await context.discover()
    await context.routing.resolveAll()
    const parts = await this.#assemble(store)
    this.#parts = parts
    this.#warnOfLowCap()
    try {
      const takenOver = await parts.session.start()
      this.#params.onStarted?.(this.description)
      if (takenOver > 0)
        context.log.info(
          `Took over ${count(takenOver, 'run')} of an earlier process named "${parts.name}"`
        )
      await store.offerBlocked(this.#keys())
    } catch (error) {
      await this.#leave(parts)
      throw error
    }
    context.starter = this
    for (const loop of [parts.claims, ...parts.upkeep, parts.routes]) loop.start()
  }

  async #assemble(store: Store): Promise<Parts> {
    const context = this.#context
    const { news, registry } = context
    const { leaseMs, hangMs, pollMs, idlePollMs } = context.options
    const { maxRecoveryAttempts: cap, worker } = context.options
    const onError = (err: unknown) => context.log.warn({ err }, 'A pass has failed; trying again')
    const { name, lock } = await lockWorkerName(store, this.#params.name ?? worker.name)
    const session = new WorkerSession({
      ...{ store, name, lock, leaseMs, log: context.log },
      ...{ suspectFrom: suspectFrom(cap), isCounted: this.#params.isCounted ?? true },
      descriptor: () => JSON.stringify(this.#descriptor()),
      onLost: () => {
        context.log.warn('The lease of this worker was recovered by others: its turns are void')
        pool.discardAll(leaseLost())
      },
    })
    const pool = new RunPool({
      ...{ context, store, lease: session },
      concurrency: this.#concurrency,
      onFree: () => claims.slotFreed(),
    })
    const claims = new Claims({
      ...{ store, session, pool, pollMs, idlePollMs, retryMs: RETRY_MS, onError },
      keys: () => this.#keys(),
    })
    const loopOf = (pass: Pass) => new Loop({ pass, retryMs: RETRY_MS, onError })
    const upkeep = this.#upkeep({ store, session, pool, claims }).map(({ runOnce, intervalMs }) =>
      loopOf(() => runOnce().then(() => intervalMs))
    )
    const check = new RouteCheck({
      routes: () => unservedRoutes(context),
      deadLetters: () => unservedDeadLetters(context),
      warn: (message) => context.log.warn(message),
      recheckMs: this.#params.routeRecheckMs,
    })
    const unsubscribe = [
      news.onDue((due) => claims.runsDue(due)),
      news.onAnything(() => {
        claims.trigger()
        for (const loop of upkeep) loop.within(UPKEEP_PAUSE_MS)
      }),
      news.onRevoked((runId, token) => pool.discardRun(runId, { token, reason: cancelled() })),
      registry.onChange(() => this.#onRegistered()),
      registry.onReload(() => this.#onReloaded()),
      attributeUnhandledRejections(),
    ]
    const watchdog = this.#params.watchdog ? new Watchdog(hangMs) : null
    const routes = loopOf(() => check.runOnce())
    return { name, store, session, pool, claims, upkeep, routes, unsubscribe, watchdog }
  }

  /** What is done again and again beside the claims, and sooner when something has changed. */
  #upkeep(parts: Pick<Parts, 'store' | 'session' | 'pool' | 'claims'>): MaintenanceTask[] {
    const { store, session, pool, claims } = parts
    const { engine } = this.#params
    const { log, options, commits, cancellation } = this.#context
    const { leaseMs, pollMs, idlePollMs } = options
    const recoveries = recovery({
      recover: () => engine.recoverIncomplete(),
      ...{ leaseMs, healthyMs: () => session.healthyMs },
      onRecovered: ({ workers, runs }) => {
        const whose = workers > 0 ? `${count(workers, 'worker')} that fell silent` : 'lost workers'
        log.warn(`Recovered ${count(runs, 'run')} of ${whose}`)
        claims.runsRecovered()
      },
    })
    const sweeps = timeouts({
      findOverdue: (limit) => store.findOverdue(limit),
      cancel: (runId) => cancellation.timeOut(runId),
      intervalMs: pollMs,
    })
    const check = new LeaseCheck({
      ...{ store, lease: session, runs: pool, leaseMs, log },
      release: (run) => commits.write(changeSet(run, {}, { kind: 'release' })),
    })
    const leases = { name: 'leases', intervalMs: idlePollMs, runOnce: () => check.runOnce() }
    return [recoveries, sweeps, leases]
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

  /** Resolves when nothing is due and nothing is executed here, or once the worker is being stopped. */
  async whenIdle(): Promise<void> {
    while (!this.#stopping) {
      const parts = this.#started()
      try {
        if (await this.#isIdle(parts)) return
        await delay(10)
      } catch (err) {
        this.#context.log.warn({ err }, 'Whether anything is due could not be read; trying again')
        await delay(RETRY_MS)
      }
    }
  }

  async #isIdle({ store, pool, claims }: Parts): Promise<boolean> {
    await this.#context.commits.idle()
    const dueIn = await store.nextDueIn(this.#keys().flatMap((key) => [key, suspectKey(key)]))
    if (dueIn === 0) claims.trigger()
    // Read after the answer: what a claim under way has taken is no longer due, and not yet in the pool.
    return dueIn !== 0 && claims.isAtRest && pool.isEmpty
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
    if (!parts || parts.claims.hasBacklog || !parts.session.isHeld || parts.pool.free === 0)
      return null
    return this.#keys().includes(key) ? parts.pool.reserve() : null
  }

  executes(runId: string): boolean {
    return this.#parts?.pool.executes(runId) ?? false
  }

  async #stop(): Promise<void> {
    await this.#starting?.catch(() => {})
    const parts = this.#parts
    if (!parts) return
    const context = this.#context
    if (context.starter === this) context.starter = null
    // First: a claim under way may be waiting for what it cannot read.
    parts.pool.close()
    await Promise.all([parts.claims, parts.routes, ...parts.upkeep].map((loop) => loop.stop()))
    await parts.pool.drain(context.options.drainMs)
    await context.commits.idle(COMMIT_GRACE_MS)
    await this.#leave(parts)
  }

  async #leave({ session, unsubscribe, watchdog }: Parts): Promise<void> {
    this.#parts = null
    try {
      await session.stop()
    } finally {
      for (const stop of unsubscribe) stop()
      await watchdog?.stop()
    }
  }

  #started(): Parts {
    if (!this.#parts) throw new Error('The worker has not been started')
    return this.#parts
  }

  /** With less, a run that only happened to be beside one that kills its process may be given up with it. */
  #warnOfLowCap(): void {
    const { maxRecoveryAttempts: cap } = this.#context.options
    if (cap !== null && cap < 3)
      this.#context.log.warn(
        `maxRecoveryAttempts is ${cap}: below 3, healthy runs may end dead beside one that kills its process`
      )
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

  /** As when a worker starts: the code that is there now may fit. */
  #onReloaded(): void {
    const parts = this.#parts
    if (!parts) return
    parts.store.offerBlocked(this.#keys()).then(
      () => parts.claims.trigger(),
      (err) => {
        this.#context.log.warn({ err }, 'Blocked runs could not be offered to the replaced code')
      }
    )
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
}

function count(number: number, what: string): string {
  return `${number} ${what}${number === 1 ? '' : 's'}`
}

interface Parts {
  name: string
  store: Store
  session: WorkerSession
  pool: RunPool
  claims: Claims
  /** Recovery, time-outs, runs taken away. */
  upkeep: Loop[]
  /** The check of failure routes. */
  routes: Loop
  unsubscribe: (() => void)[]
  watchdog: Watchdog | null
}

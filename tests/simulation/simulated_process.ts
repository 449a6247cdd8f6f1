import type { Transport } from '../../src/contracts/transport.ts'
import { internalsOf } from '../../src/engine/engine.ts'
import type { MemoryDatabase } from '../../src/stores/memory/memory_database.ts'
import { AbortError } from '../../src/errors.ts'
import type { Lease } from '../../src/engine/lease.ts'
import { claimKey } from '../../src/core/name.ts'
import { Loop } from '../../src/worker/loop.ts'
import { RunPool } from '../../src/worker/pool.ts'
import { DurableApp } from '../support/durable_app.ts'
import type { LogCapture } from '../support/log_capture.ts'
import type { Plan } from './body_plan.ts'
import { CutStore, type CutListener } from './cut_store.ts'
import { type BodyEnvironment, runBody, type StepInput } from './random_body.ts'

export interface SimulatedProcessParams {
  database: MemoryDatabase
  /** Stable name of the worker. */
  name: string
  /** Unlike that of any other process. */
  instance: string
  listener: CutListener
  environment: BodyEnvironment
  residentRuns: number
  /** How often an attempt is sent again before it is lost. */
  redispatchMax: number
  transport: (process: SimulatedProcess) => Transport
  onFailure: (error: unknown) => void
}

const KEYS = ['root', 'child'].map((name) => claimKey('default', name, '1'))
const POLL_MS = 60_000

/** A process that executes runs: the engine, the pool and the loop of claims as a worker has them, and a lease that lasts until it is taken away. */
export class SimulatedProcess {
  readonly app: DurableApp
  readonly store: CutStore
  readonly instance: string
  readonly name: string
  /** `gone` for good, or `still` until it goes on; its runs belong to others in both cases. */
  state: 'alive' | 'still' | 'outdated' | 'gone' = 'alive'
  #pool: RunPool
  #claims: Loop
  #lease: Lease & { owner: string }
  #stop: (() => void)[] = []
  #onFailure: (error: unknown) => void

  constructor(params: SimulatedProcessParams) {
    const { database, environment } = params
    this.instance = params.instance
    this.name = params.name
    this.#onFailure = params.onFailure
    this.store = new CutStore(database, params.listener)
    this.app = new DurableApp({
      store: this.store.store,
      options: { residentRuns: params.residentRuns, redispatchMax: params.redispatchMax },
      transport: params.transport(this),
    })
    this.#register(environment)
    const isHeld = () => this.state === 'alive' || this.state === 'still'
    this.#lease = {
      owner: params.instance,
      get isHeld() {
        return isHeld()
      },
      held: async () => isHeld(),
    }
    const context = internalsOf(this.app.engine)
    this.#claims = new Loop({
      pass: () => this.#claim(),
      retryMs: 1,
      onError: (error) => this.#failed(error),
    })
    this.#pool = new RunPool({
      context,
      store: this.store.store,
      lease: this.#lease,
      concurrency: 50,
      onFree: () => this.#claims.trigger(),
    })
    this.#stop = [
      context.news.onDue(() => this.#claims.trigger()),
      context.news.onAnything(() => this.#claims.trigger()),
    ]
    context.starter = {
      offer: () => (this.state === 'alive' ? this.#pool.reserve() : null),
      executes: (runId) => this.#pool.executes(runId),
    }
  }

  /** Takes over what an earlier process of the same name had, and begins to claim. */
  async start(): Promise<void> {
    const { instance, name } = this
    await this.store.memory.registerWorker({
      ...{ instance, name, leaseMs: 1e15, descriptor: '{"claimKeys":[]}', takeOver: true },
    })
    // Opening the store is what connects the engine to changes of others.
    await this.app.engine.findStranded()
    this.#claims.start()
  }

  /** Nothing of it is at work, and nothing will be before it hears of something. */
  get isAtRest(): boolean {
    return this.state === 'gone' || (this.#claims.isAtRest && this.#pool.isEmpty)
  }

  /** Starts the root run, as a caller does that tries again when its connection breaks. */
  startRoot(runId: string, plan: Plan): void {
    const start = () => this.app.engine.start('root', plan, runId)
    start()
      .catch(start)
      .catch((error) => this.#failed(error))
  }

  /** Ends everything that this process still does or waits for. */
  end(): void {
    this.state = 'gone'
    this.#lease.owner = 'nobody'
    for (const stop of this.#stop) stop()
    void this.#claims.stop()
    this.store.end()
    // What comes late is not read again and again.
    this.#pool.close()
    this.#pool.discardAll(new AbortError('worker_stopping', 'The simulation is over'))
    this.app.engine.stop().catch((error) => this.#onFailure(error))
  }

  async #claim(): Promise<number> {
    if (this.state === 'gone') return POLL_MS
    const rows = await this.store.store.claim({ owner: this.instance, claimKeys: KEYS, limit: 20 })
    if (rows.length > 0) await this.#pool.execute(rows)
    return POLL_MS
  }

  #failed(error: unknown): void {
    if (this.state === 'alive') this.#onFailure(error)
  }

  #register(environment: BodyEnvironment): void {
    const { engine, registry } = this.app
    for (const name of ['root', 'child'])
      engine.register(name, '1', (ctx, plan: Plan) => runBody(environment, ctx, plan))
    registry.registerStep({
      ...{ name: 'work', options: {}, file: null },
      run: (input, step) => environment.runStep(input as StepInput, step),
    })
  }
}

/** The first error that a process has logged; undefined = none. */
export function errorLogged({ lines }: LogCapture): string | undefined {
  const line = lines.find(({ level }) => level === 'error')
  return line && `Logged: ${line.args.map(describe).join(' ')}`
}

function describe(logged: unknown): string | undefined {
  const isObject = typeof logged === 'object' && logged !== null
  const err: unknown = isObject ? Reflect.get(logged, 'err') : logged
  return err instanceof Error ? err.stack : JSON.stringify(logged)
}

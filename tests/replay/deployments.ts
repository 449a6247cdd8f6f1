import type { WorkflowEngine } from '../../src/engine/engine.ts'
import type { OpenOperation, RecordedOperation } from '../../src/engine/run_history.ts'
import type { WorkflowRun } from '../../src/engine/workflow_run.ts'
import type { GivenOptions } from '../../src/options.ts'
import { encode } from '../../src/core/payload.ts'
import { MemoryStore } from '../../src/stores/memory/memory_store.ts'
import { MemoryDatabase } from '../../src/stores/memory/memory_database.ts'
import type { WorkflowCtx } from '../../src/types/context.ts'
import type { DurableWorker } from '../../src/worker/worker.ts'
import { DurableApp } from '../support/durable_app.ts'
import { CutStore } from '../simulation/cut_store.ts'

export type Body = (ctx: WorkflowCtx, input: any) => unknown

/** Processes of an application, one after the other, on one database: each has no memory of those before it. */
export class Deployments {
  readonly database = new MemoryDatabase()
  #current: DurableApp | null = null
  #store: CutStore | null = null
  #outside = new MemoryStore(this.database)
  #signals = 0
  #meanwhile: (() => void) | null = null
  #killed: { app: DurableApp; store: CutStore }[] = []
  #worker: DurableWorker | null = null

  get app(): DurableApp {
    if (!this.#current) throw new Error('Nothing is deployed')
    return this.#current
  }

  get engine(): WorkflowEngine {
    return this.app.engine
  }

  /** Stops the process there is, and starts one with these workflows. */
  async deploy(bodies: Record<string, Body>, options: GivenOptions = {}): Promise<DurableApp> {
    await this.#current?.close()
    this.#store = new CutStore(this.database, {
      active() {},
      commit: () => {
        const meanwhile = this.#meanwhile
        this.#meanwhile = null
        meanwhile?.()
        return null
      },
      applied() {},
      cut() {},
      delays: () => false,
    })
    const app = new DurableApp({ store: this.#store.store, options })
    for (const [name, body] of Object.entries(bodies)) app.engine.register(name, '1', body)
    this.#current = app
    this.#worker = await app.work({ name: 'worker' })
    return app
  }

  /** Runs the body of 'main' until nothing is to be done, and gives what became of the run. */
  async start(input: unknown = undefined, runId = 'run'): Promise<WorkflowRun> {
    await this.engine.start('main', input, runId)
    return this.rest(runId)
  }

  /** Waits until nothing is due and nothing is executed. */
  async rest(runId = 'run'): Promise<WorkflowRun> {
    await this.#worker?.whenIdle()
    const run = await this.engine.getRun(runId)
    if (!run) throw new Error(`There is no run "${runId}"`)
    return run
  }

  /** Moves the clock, then waits as `rest` does. */
  async advance(ms: number, runId = 'run'): Promise<WorkflowRun> {
    await this.engine.advanceClock(ms)
    return this.rest(runId)
  }

  async records(runId = 'run'): Promise<RecordedOperation[]> {
    return (await this.engine.getHistory(runId))!.records
  }

  async waits(runId = 'run'): Promise<OpenOperation[]> {
    return (await this.engine.getHistory(runId))!.waits
  }

  /** Sends a signal from another process. */
  signalFromOutside(token: string, payload: unknown): void {
    const signal = { id: `${token}-${this.#signals++}`, token, payload: encode(payload) }
    void this.#outside.commit([{ type: 'signal', signal }])
  }

  /** Calls `meanwhile` when the process is about to write. */
  beforeNextCommit(meanwhile: () => void): void {
    this.#meanwhile = meanwhile
  }

  /** Leaves the process as if it had been killed: nothing that it does from now on reaches the database. */
  crash(): void {
    if (!this.#current || !this.#store) throw new Error('Nothing is deployed')
    this.#store.goSilent()
    this.database.disconnect(this.#store.memory)
    this.#killed.push({ app: this.#current, store: this.#store })
    this.#current = null
  }

  async close(): Promise<void> {
    await this.#current?.close()
    this.#current = null
    for (const { app, store } of this.#killed.splice(0)) {
      store.end()
      await app.close().catch(() => {})
    }
  }
}

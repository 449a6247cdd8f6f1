import type { StepMessage } from '../../src/contracts/transport.ts'
import type { Store } from '../../src/contracts/store.ts'
import type { Dispatch } from '../../src/core/dispatch.ts'
import type { HistoryRecord, Wait } from '../../src/core/history.ts'
import type { RunStatus } from '../../src/core/run.ts'
import type { WorkflowRun } from '../../src/engine/workflow_run.ts'
import type { GivenOptions } from '../../src/options.ts'
import type { DurableWorker } from '../../src/worker/worker.ts'
import type { DurableApp } from '../support/durable_app.ts'
import { DurableApps } from '../support/durable_apps.ts'
import { type DatabaseKind, emptyDatabase, type TestDatabase } from '../stores/databases.ts'
import { Broker } from './broker.ts'

export const RECONCILE_MS = 60_000

interface AppOptions {
  options?: GivenOptions
  /** Without it, every step is executed beside its body. Default true. */
  hasTransport?: boolean
  /** Called before messages are accepted. */
  onSend?: (messages: readonly StepMessage[]) => Promise<void>
}

/** One database, one broker, and applications on both. */
export class BrokeredApps extends DurableApps {
  readonly broker = new Broker()
  /** A connection that no application uses. */
  readonly store: Store
  #first: DurableApp | undefined

  private constructor(database: TestDatabase, store: Store) {
    super(database)
    this.store = store
  }

  static async on(kind: DatabaseKind): Promise<BrokeredApps> {
    const database = await emptyDatabase(kind)
    return new BrokeredApps(database, await database.connect())
  }

  /** One process of an application. */
  async app({ options, hasTransport = true, onSend }: AppOptions = {}): Promise<DurableApp> {
    const app = await this.add({
      options: { pollMs: 20, idlePollMs: 50, reconcileMs: RECONCILE_MS, ...options },
      ...(hasTransport && { transport: this.broker.transport(onSend) }),
    })
    this.#first ??= app
    return app
  }

  /** Moves the clock, and waits until a worker has done what is due then. */
  async pass(worker: DurableWorker, ms: number): Promise<void> {
    await this.store.advanceClock(ms)
    await worker.whenIdle()
  }

  async records(runId: string): Promise<HistoryRecord[]> {
    const { records } = await this.#history(runId)
    return records
  }

  /** The one open wait of a run. */
  async wait(runId: string): Promise<Wait> {
    const { waits } = await this.#history(runId)
    const [wait, ...others] = waits
    if (!wait || others.length > 0) throw new Error(`Run "${runId}" has ${waits.length} waits`)
    return wait
  }

  async run(runId: string): Promise<WorkflowRun> {
    const run = await this.#first?.engine.getRun(runId)
    if (!run) throw new Error(`There is no run "${runId}"`)
    return run
  }

  async statusOf(runId: string): Promise<RunStatus> {
    const { status } = await this.run(runId)
    return status
  }

  /** When the one open wait of a run is over by time. */
  async deadlineOf(runId: string): Promise<number | null> {
    const { dueAt } = await this.wait(runId)
    return dueAt
  }

  /** What was sent for the one open wait of a run. */
  async dispatchOf(runId: string): Promise<Dispatch | null> {
    const { dispatch } = await this.wait(runId)
    return dispatch
  }

  async #history(runId: string): Promise<{ records: HistoryRecord[]; waits: Wait[] }> {
    const history = await this.store.getHistory(runId)
    if (!history) throw new Error(`There is no run "${runId}"`)
    return history
  }
}

import type { Store } from '../../src/contracts/store.ts'
import type { WorkflowEngine } from '../../src/engine/engine.ts'
import type { WorkflowRun } from '../../src/engine/workflow_run.ts'
import type { GivenOptions } from '../../src/options.ts'
import { DurableApp } from '../engine/durable_app.ts'
import type { TestDatabase } from '../worker/databases.ts'
import { STORES } from './databases.ts'
import { DyingProcesses } from './lost_runs.ts'

export const CAP = 3

/** One database, applications on it, and processes that die with its runs. */
export class Stage {
  readonly store: Store
  readonly dying: DyingProcesses
  #database: TestDatabase
  #apps: DurableApp[] = []

  private constructor(database: TestDatabase, params: { store: Store; cap: number | null }) {
    this.#database = database
    this.store = params.store
    this.dying = new DyingProcesses(params.store, params)
  }

  /** @param kind a name among `STORES` */
  static async on(kind: string, cap: number | null = CAP): Promise<Stage> {
    const create = STORES[kind]
    if (!create) throw new Error(`There is no database "${kind}"`)
    const database = await create()
    return new Stage(database, { store: await database.connect(), cap })
  }

  /** One process of an application. */
  async app(options: GivenOptions = {}): Promise<DurableApp> {
    const app = new DurableApp({
      store: await this.#database.connect(),
      options: { maxRecoveryAttempts: CAP, pollMs: 20, idlePollMs: 50, ...options },
    })
    this.#apps.push(app)
    return app
  }

  /** Loses the runs of a workflow as often as the cap allows, and once more: the next pickup is one too many. */
  async loseBeyondCap(workflow: string, namespace?: string): Promise<void> {
    for (let pickup = 0; pickup <= CAP; pickup++) await this.dying.takeAndDie(workflow, namespace)
  }

  /** The handler run of a dead run, once both have ended. */
  async handled(engine: WorkflowEngine, id = 'r'): Promise<WorkflowRun> {
    await engine.waitForRun(id)
    return engine.waitForRun(`dlq:${id}`)
  }

  async close(): Promise<void> {
    for (const app of this.#apps) await app.close()
    await this.#database.remove()
  }
}

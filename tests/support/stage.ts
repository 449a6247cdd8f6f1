import type { Store } from '../../src/contracts/store.ts'
import type { WorkflowEngine } from '../../src/engine/engine.ts'
import type { WorkflowRun } from '../../src/engine/workflow_run.ts'
import type { GivenOptions } from '../../src/options.ts'
import type { DurableApp } from './durable_app.ts'
import { DurableApps } from './durable_apps.ts'
import { type DatabaseKind, emptyDatabase, type TestDatabase } from '../stores/databases.ts'
import { DyingProcesses } from './dying_processes.ts'

export const CAP = 3

/** One database, applications on it, and processes that die with its runs. */
export class Stage extends DurableApps {
  readonly store: Store
  readonly dying: DyingProcesses

  private constructor(database: TestDatabase, params: { store: Store; cap: number | null }) {
    super(database)
    this.store = params.store
    this.dying = new DyingProcesses(params.store, params)
  }

  static async on(kind: DatabaseKind, cap: number | null = CAP): Promise<Stage> {
    const database = await emptyDatabase(kind)
    return new Stage(database, { store: await database.connect(), cap })
  }

  /** One process of an application. */
  app(options: GivenOptions = {}): Promise<DurableApp> {
    return this.add({
      options: { maxRecoveryAttempts: CAP, pollMs: 20, idlePollMs: 50, ...options },
    })
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
}

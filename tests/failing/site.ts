import type { WorkflowEngine } from '../../src/engine/engine.ts'
import type { RecordedOperation } from '../../src/engine/run_history.ts'
import type { GivenOptions } from '../../src/options.ts'
import type { WorkflowCtx } from '../../src/types/context.ts'
import type { DurableApp } from '../support/durable_app.ts'
import { DurableApps } from '../support/durable_apps.ts'
import { type DatabaseKind, emptyDatabase } from '../stores/databases.ts'

/** The workflow of most tests. */
export const MAIN = { name: 'main', version: '1' }

export type Bodies = Record<string, (ctx: WorkflowCtx, input: any) => unknown>

/** Applications of one test, on one database. */
export class Site extends DurableApps {
  static async on(kind: DatabaseKind): Promise<Site> {
    return new Site(await emptyDatabase(kind))
  }

  /** An application that executes nothing yet. */
  async app(
    bodies: Bodies = {},
    options: GivenOptions = {},
    discover: () => Promise<void> = async () => {}
  ): Promise<{ app: DurableApp; engine: WorkflowEngine }> {
    const app = await this.add({ options, discover })
    for (const [name, body] of Object.entries(bodies)) app.engine.register(name, '1', body)
    return { app, engine: app.engine }
  }

  /** An application with a worker. */
  async working(bodies: Bodies = {}, options: GivenOptions = {}) {
    const made = await this.app(bodies, options)
    await made.app.work()
    return made
  }
}

/** Undefined: there is no such run. */
export async function statusOf(engine: WorkflowEngine, runId: string) {
  const run = await engine.getRun(runId)
  return run?.status
}

/** Live records of a run in order of `seq`. */
export async function live(engine: WorkflowEngine, runId: string): Promise<RecordedOperation[]> {
  const history = await engine.getHistory(runId)
  return (history?.records ?? []).filter(({ generation }) => generation === 0)
}

/** The compensations of a run as they are recorded: name, status, attempts. */
export async function undone(engine: WorkflowEngine, runId: string) {
  const records = await live(engine, runId)
  return records
    .filter(({ kind }) => kind === 'compensation')
    .map(({ name, status, attempts }) => [name, status, attempts])
}

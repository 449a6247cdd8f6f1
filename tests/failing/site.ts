import type { Assert } from '@japa/assert'
import type { WorkflowEngine } from '../../src/engine/engine.ts'
import type { RecordedOperation } from '../../src/engine/run_history.ts'
import type { GivenOptions } from '../../src/options.ts'
import type { WorkflowCtx } from '../../src/types/context.ts'
import { DurableApp } from '../engine/durable_app.ts'
import { DATABASES, type TestDatabase } from '../worker/databases.ts'
import { until } from '../worker/until.ts'

/** The workflow of most tests. */
export const MAIN = { name: 'main', version: '1' }

export type Bodies = Record<string, (ctx: WorkflowCtx, input: any) => unknown>

/** Applications of one test, on one database. */
export class Site {
  #database: TestDatabase
  #apps = new Set<DurableApp>()

  private constructor(database: TestDatabase) {
    this.#database = database
  }

  /** @param kind a name among `DATABASES` */
  static async on(kind: string): Promise<Site> {
    const create = DATABASES[kind]
    if (!create) throw new Error(`There is no database "${kind}"`)
    return new Site(await create())
  }

  /** An application that executes nothing yet. */
  async app(
    bodies: Bodies = {},
    options: GivenOptions = {},
    discover: () => Promise<void> = async () => {}
  ): Promise<{ app: DurableApp; engine: WorkflowEngine }> {
    const app = new DurableApp({ store: await this.#database.connect(), options, discover })
    this.#apps.add(app)
    for (const [name, body] of Object.entries(bodies)) app.engine.register(name, '1', body)
    return { app, engine: app.engine }
  }

  /** An application with a worker. */
  async working(bodies: Bodies = {}, options: GivenOptions = {}) {
    const made = await this.app(bodies, options)
    await made.app.work()
    return made
  }

  /** Stops an application before the test is over. */
  async stop(app: DurableApp): Promise<void> {
    this.#apps.delete(app)
    await app.close()
  }

  /** Stops everything; nothing may be stranded then (P4). */
  async close(assert: Assert): Promise<void> {
    for (const app of this.#apps) await app.close()
    const store = await this.#database.connect()
    const stranded = await store.findStranded()
    await store.close()
    await this.#database.remove()
    assert.deepEqual(stranded, [], 'stranded runs')
  }
}

/** The names of the databases. */
const KINDS = Object.keys(DATABASES)

/** Undefined: there is no such run. */
export async function statusOf(engine: WorkflowEngine, runId: string) {
  const run = await engine.getRun(runId)
  return run?.status
}

/** Resolves once the run has this status. */
export async function reaches(engine: WorkflowEngine, runId: string, status: string) {
  await until(async () => (await statusOf(engine, runId)) === status)
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

/** Declares the same group of tests for every database. */
export function onEach(define: (kind: string) => void): void {
  for (const kind of KINDS) define(kind)
}

import type { WorkflowEngine } from '../src/engine/engine.ts'
import type { WorkflowRef } from '../src/types/workflow.ts'
import { DurableApp } from '../tests/support/durable_app.ts'
import type { EngineDatabase } from './engine_databases.ts'
import type { Tally } from './subject.ts'

/** A working engine on a new, empty database, with the workflows that are measured. */
export class EngineStand {
  readonly engine: WorkflowEngine
  /** Takes the number of its local steps, one after the other. */
  readonly steps: WorkflowRef<number, number>
  /** Takes the number of its children, each of one step, all at once. */
  readonly fanOut: WorkflowRef<number, number>
  #app: DurableApp
  #database: EngineDatabase

  private constructor(database: EngineDatabase) {
    this.#database = database
    this.#app = new DurableApp({ store: database.store })
    this.engine = this.#app.engine
    const steps = this.engine.register('steps', '1', async (ctx, count: number) => {
      for (let seq = 0; seq < count; seq++) await ctx.localStep('step', () => ({ seq }))
      return count
    })
    this.steps = steps
    this.fanOut = this.engine.register('fan-out', '1', async (ctx, count: number) => {
      const outputs = await ctx.all(
        steps,
        Array.from({ length: count }, () => 1)
      )
      return outputs.length
    })
  }

  /** @param params.concurrency runs that the worker executes at once */
  static async create(params: {
    database: EngineDatabase
    concurrency: number
  }): Promise<EngineStand> {
    const stand = new EngineStand(params.database)
    await stand.#app.work({ concurrency: params.concurrency })
    return stand
  }

  tally(): Promise<Tally> {
    return this.#database.tally()
  }

  async close(): Promise<void> {
    await this.#app.close()
    await this.#database.remove()
  }
}

import type { WorkflowEngine } from '../src/engine/engine.ts'
import type { WorkflowRef } from '../src/types/workflow.ts'
import { DurableApp } from '../tests/engine/durable_app.ts'
import { SqliteDatabase } from '../tests/stores/sqlite_database.ts'

/** Where the engine keeps its runs. */
export type StoreKind = 'memory' | 'sqlite'

/** A working engine on a new, empty store, with the workflows that are measured. */
export class EngineStand {
  readonly engine: WorkflowEngine
  /** Takes the number of its local steps, one after the other. */
  readonly steps: WorkflowRef<number, number>
  /** Takes the number of its children, each of one step, all at once. */
  readonly fanOut: WorkflowRef<number, number>
  #app: DurableApp
  #remove: () => Promise<void>

  private constructor(app: DurableApp, remove: () => Promise<void>) {
    this.#app = app
    this.#remove = remove
    this.engine = app.engine
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
  static async create(params: { store: StoreKind; concurrency: number }): Promise<EngineStand> {
    const stand = await (params.store === 'memory' ? onMemory() : onSqlite())
    await stand.#app.work({ concurrency: params.concurrency })
    return stand

    async function onMemory() {
      return new EngineStand(new DurableApp(), async () => {})
    }

    async function onSqlite() {
      const database = await SqliteDatabase.create()
      const app = new DurableApp({ store: await database.store() })
      return new EngineStand(app, () => database.remove())
    }
  }

  async close(): Promise<void> {
    await this.#app.close()
    await this.#remove()
  }
}

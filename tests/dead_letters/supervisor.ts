import type { WorkflowEngine } from '../../src/engine/engine.ts'
import type { WorkflowRun } from '../../src/engine/workflow_run.ts'
import { ForkedProcess } from '../support/forked_process.ts'
import { DurableApp } from '../support/durable_app.ts'
import type { PoisonOrder } from './poison_process.ts'
import {
  createDatabase,
  type DatabaseAddress,
  type ProcessDatabase,
} from '../support/process_database.ts'

const SCRIPT = new URL('./poison_process.ts', import.meta.url)

export type Order = Partial<Omit<PoisonOrder, 'address' | 'name'>>

/** Worker processes that are started again, under their names, whenever they are killed; and this one, which looks on. */
export class Supervisor {
  readonly engine: WorkflowEngine
  /** How often a process was started again. */
  restarts = 0
  #database: ProcessDatabase
  #forked = new Set<ForkedProcess<'ready'>>()
  #newest = new Map<string, ForkedProcess<'ready'>>()
  #supervised: Promise<void>[] = []
  #isOver = false

  private constructor(database: ProcessDatabase, engine: WorkflowEngine) {
    this.#database = database
    this.engine = engine
  }

  static async on(kind: DatabaseAddress['kind']): Promise<Supervisor> {
    const database = await createDatabase(kind)
    const store = await database.store()
    const { engine } = new DurableApp({ store, options: { pollMs: 50, idlePollMs: 100 } })
    return new Supervisor(database, engine)
  }

  /** Starts processes and keeps them alive. */
  supervise(count: number, order: Order): void {
    for (let index = 0; index < count; index++)
      this.#supervised.push(this.#keep(`w${index}`, order))
  }

  /** One process that nobody starts again. Resolves once it claims. */
  async start(name: string, order: Order): Promise<ForkedProcess<'ready'>> {
    const process = this.#fork()
    this.#tell(process, name, order)
    await process.heard()
    return process
  }

  /** Kills the newest process of a name. */
  async kill(name: string): Promise<void> {
    await this.#newest.get(name)?.kill()
  }

  /** A run once it has ended. */
  ended(id: string): Promise<WorkflowRun> {
    return this.engine.waitForRun(id)
  }

  async close(): Promise<void> {
    this.#isOver = true
    for (const process of this.#forked) {
      process.signal('SIGCONT')
      await process.kill()
    }
    await Promise.all(this.#supervised)
    await this.engine.stop()
    await this.#database.remove()
  }

  /** The next process loads its code while the one before is at work. */
  async #keep(name: string, order: Order): Promise<void> {
    let next = this.#fork()
    while (!this.#isOver) {
      const process = next
      next = this.#fork()
      this.#tell(process, name, order)
      await process.ended()
      if (this.#isOver) return
      if (process.killedBy !== 'SIGKILL')
        throw new Error(`Ended by ${process.killedBy ?? process.exitCode}: ${process.output}`)
      this.restarts++
    }
  }

  #fork(): ForkedProcess<'ready'> {
    const process = new ForkedProcess<'ready'>(SCRIPT)
    this.#forked.add(process)
    return process
  }

  #tell(process: ForkedProcess<'ready'>, name: string, order: Order): void {
    const { address } = this.#database
    const defaults = { watchdog: false, concurrency: 150, env: {}, options: {} }
    const full: PoisonOrder = { ...defaults, ...order, address, name }
    process.tell(full)
    this.#newest.set(name, process)
  }
}

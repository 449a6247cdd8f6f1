import type { ResultReceipt } from '../../src/contracts/transport.ts'
import type { StepResult } from '../../src/core/dispatch.ts'
import type { WorkflowEngine } from '../../src/engine/engine.ts'
import type { WorkflowRun } from '../../src/engine/workflow_run.ts'
import { ForkedProcess } from '../support/forked_process.ts'
import {
  createDatabase,
  type DatabaseAddress,
  type ProcessDatabase,
} from '../support/process_database.ts'
import { DurableApp } from '../support/durable_app.ts'
import { cleanUp } from '../support/clean_up.ts'
import { Broker } from './broker.ts'
import type { CoordinatorNews, CoordinatorOrder, CoordinatorReport } from './coordinator_process.ts'

const SCRIPT = new URL('./coordinator_process.ts', import.meta.url)

export type Order = Partial<Omit<CoordinatorOrder, 'address'>>

/** A process that executes runs, and leaves the steps to a broker of the test. */
class Coordinator {
  #process: ForkedProcess<CoordinatorReport>
  #broker: Broker
  #disconnect = () => {}
  #working = Promise.withResolvers<void>()
  #local = Promise.withResolvers<void>()
  #hasEnded = false
  #deliveries = 0
  #receipts = new Map<number, PromiseWithResolvers<ResultReceipt>>()
  #counted = Promise.withResolvers<number | null>()
  #heard: Promise<void>

  constructor(broker: Broker, order: CoordinatorOrder) {
    this.#broker = broker
    this.#process = new ForkedProcess(SCRIPT, [JSON.stringify(order)])
    for (const { promise } of [this.#working, this.#local]) promise.catch(() => {})
    this.#heard = this.#hear()
  }

  /** Resolves once it claims runs. */
  get working(): Promise<void> {
    return this.#working.promise
  }

  /** Resolves once the local step of a run has begun in it. */
  get localBegan(): Promise<void> {
    return this.#local.promise
  }

  get output(): string {
    return this.#process.output
  }

  get killedBy(): NodeJS.Signals | null {
    return this.#process.killedBy
  }

  /** Resolves once it has ended and all that it said has been heard. */
  ended(): Promise<void> {
    return this.#heard
  }

  /** How many writes it has made, once none is under way; null: it has been killed. */
  async writes(): Promise<number | null> {
    this.#tell({ type: 'count' })
    const count = await this.#counted.promise
    if (count === null && this.killedBy !== 'SIGKILL') throw new Error(this.output)
    return count
  }

  async kill(): Promise<void> {
    await this.#process.kill()
    await this.#heard
  }

  async #hear(): Promise<void> {
    for (;;) {
      const report = await this.#process.next()
      if (report === null) break
      this.#take(report)
    }
    this.#disconnect()
    this.#hasEnded = true
    const error = new Error(`The process has ended: ${this.output}`)
    for (const { reject } of this.#receipts.values()) reject(error)
    this.#counted.resolve(null)
    this.#working.reject(error)
    this.#local.reject(error)
  }

  #take(report: CoordinatorReport): void {
    switch (report.type) {
      case 'listening':
        this.#disconnect = this.#broker.connect({
          result: (result) => this.#deliver(result),
          heartbeat: () => Promise.reject(new Error('No heartbeats are sent to processes')),
        })
        return
      case 'working':
        return this.#working.resolve()
      case 'local':
        return this.#local.resolve()
      case 'sent':
        return this.#broker.accept(report.messages)
      case 'writes':
        return this.#counted.resolve(report.count)
      case 'receipt': {
        const waiting = this.#receipts.get(report.id)
        this.#receipts.delete(report.id)
        if (report.receipt === null) waiting?.reject(new Error('It could not be stored'))
        else waiting?.resolve(report.receipt)
      }
    }
  }

  #deliver(result: StepResult): Promise<ResultReceipt> {
    if (this.#hasEnded) return Promise.reject(new Error('The process has ended'))
    const id = this.#deliveries++
    const receipt = Promise.withResolvers<ResultReceipt>()
    this.#receipts.set(id, receipt)
    this.#tell({ type: 'result', id, result })
    return receipt.promise
  }

  #tell(news: CoordinatorNews): void {
    this.#process.tell(news)
  }
}

/** A database and a broker that processes come to and go from, and an engine of this process that looks on. */
export class Coordinators {
  readonly broker = new Broker()
  readonly engine: WorkflowEngine
  #database: ProcessDatabase
  #options: CoordinatorOrder['options']
  #processes: Coordinator[] = []

  private constructor(
    database: ProcessDatabase,
    params: { engine: WorkflowEngine; options: CoordinatorOrder['options'] }
  ) {
    this.#database = database
    this.engine = params.engine
    this.#options = params.options
  }

  static async on(
    kind: DatabaseAddress['kind'],
    options: CoordinatorOrder['options']
  ): Promise<Coordinators> {
    const database = await createDatabase(kind)
    const polling = { pollMs: 20, idlePollMs: 50 }
    const { engine } = new DurableApp({ store: await database.store(), options: polling })
    return new Coordinators(database, { engine, options: { ...polling, ...options } })
  }

  /** A process; it may still be starting. */
  start(name: string, order: Order = {}): Coordinator {
    const defaults = { hangs: false, point: null, options: this.#options }
    const { address } = this.#database
    const process = new Coordinator(this.broker, { ...defaults, ...order, address, name })
    this.#processes.push(process)
    return process
  }

  /** Stores a run for the processes to execute. */
  async begin(workflow: string, id: string): Promise<void> {
    await this.engine.start({ name: workflow, version: '1' }, null, id)
  }

  async run(id: string): Promise<WorkflowRun> {
    const run = await this.engine.getRun(id)
    if (!run) throw new Error(`There is no run "${id}"`)
    return run
  }

  async close(): Promise<void> {
    await cleanUp(
      ...this.#processes.map((process) => () => process.kill()),
      () => this.engine.stop(),
      () => this.#database.remove()
    )
  }
}

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { WorkflowEngine } from '../../src/engine/engine.ts'
import type { LucidStore } from '../../src/stores/lucid/lucid_store.ts'
import { Effects } from '../support/effects.ts'
import { ForkedProcess } from '../support/forked_process.ts'
import {
  createDatabase,
  type DatabaseAddress,
  type ProcessDatabase,
} from '../support/process_database.ts'
import { processApp } from '../support/process_app.ts'
import { cleanUp } from '../support/clean_up.ts'
import type { LeaseOrder } from './lease_process.ts'
import { until } from '../support/until.ts'

const SCRIPT = new URL('./lease_process.ts', import.meta.url)
/** Effects of the three steps of run `r`. */
const STEPS = ['r:0#1', 'r:1#1', 'r:2#1'] as const

export type WorkerProcess = ForkedProcess<'ready'>

/** Worker processes on one database, and this process, which starts runs and looks on. */
export class LeaseProcesses {
  readonly engine: WorkflowEngine
  readonly effects: Effects
  #database: ProcessDatabase
  #store: LucidStore
  #directory: string
  #processes: WorkerProcess[] = []

  private constructor(params: { database: ProcessDatabase; store: LucidStore; directory: string }) {
    this.#database = params.database
    this.#store = params.store
    this.#directory = params.directory
    this.engine = processApp(this.#store).engine
    this.effects = new Effects(this.file('effects'))
  }

  static async on(kind: DatabaseAddress['kind']): Promise<LeaseProcesses> {
    const database = await createDatabase(kind)
    const directory = await mkdtemp(join(tmpdir(), 'durable-leases-'))
    return new LeaseProcesses({ database, store: await database.store(), directory })
  }

  /** Path of a file that the processes and the test share. */
  file(name: string): string {
    return join(this.#directory, name)
  }

  /** Resolves once the worker has begun to claim. */
  async start(
    order: Pick<LeaseOrder, 'name' | 'options'> & Partial<LeaseOrder>
  ): Promise<WorkerProcess> {
    const full: LeaseOrder = {
      ...{ watchdog: false, blockUntil: null, waits: false },
      ...{ address: this.#database.address, effects: this.file('effects') },
      ...order,
    }
    const process: WorkerProcess = new ForkedProcess(SCRIPT, [JSON.stringify(full)])
    this.#processes.push(process)
    await process.heard()
    return process
  }

  startRun(id = 'r'): Promise<unknown> {
    return this.engine.start({ name: 'three', version: '1' }, null, id)
  }

  /** Resolves once the second step of run `r` has begun. */
  secondBegun(): Promise<void> {
    return until(() => this.effects.counts().has(STEPS[1]))
  }

  /** Resolves once the lease of a worker has been renewed `count` times more. */
  async renewed(name: string, count: number): Promise<void> {
    let last = 0
    for (let seen = -1; seen < count;) {
      await until(async () => {
        const workers = await this.engine.listWorkers()
        const own = workers.filter((worker) => worker.name === name)
        const newest = Math.max(0, ...own.map((worker) => worker.until))
        if (newest <= last) return false
        last = newest
        return true
      })
      seen++
    }
  }

  /** Resolves once the database's clock has passed an instant. */
  passed(instant: number): Promise<void> {
    return until(async () => (await this.#store.now()) > instant)
  }

  /** Processes that executed each of the steps of run `r`, in order. */
  executions(): number[][] {
    const effects = this.effects.list()
    return STEPS.map((step) =>
      effects.filter(({ attempt }) => attempt === step).map(({ pid }) => pid)
    )
  }

  async close(): Promise<void> {
    await cleanUp(
      ...this.#processes.map((process) => () => process.kill()),
      () => this.engine.stop(),
      () => this.#database.remove(),
      () => rm(this.#directory, { recursive: true })
    )
  }
}

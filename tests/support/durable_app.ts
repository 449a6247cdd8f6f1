import type { Store } from '../../src/contracts/store.ts'
import type { Transport } from '../../src/contracts/transport.ts'
import { WorkflowEngine } from '../../src/engine/engine.ts'
import { Registry } from '../../src/engine/registry.ts'
import { resolveOptions, type GivenOptions } from '../../src/options.ts'
import { MemoryDatabase } from '../../src/stores/memory/memory_database.ts'
import { MemoryStore } from '../../src/stores/memory/memory_store.ts'
import type { RunLogger } from '../../src/types/step.ts'
import { cleanUp } from './clean_up.ts'
import { DurableWorker, type WorkerParams } from '../../src/worker/worker.ts'
import { LogCapture } from './log_capture.ts'

export interface AppParams {
  store?: Store
  options?: GivenOptions
  inDevelopment?: boolean
  discover?: () => Promise<void>
  /** Default: none, and every step is executed beside its body. */
  transport?: Transport
  /** Default: `log` of the application. */
  logger?: RunLogger
}

/** An engine and its workers, as one process of an application has them. */
export class DurableApp {
  readonly engine: WorkflowEngine
  readonly log = new LogCapture()
  readonly registry = new Registry()
  #workers: DurableWorker[] = []

  constructor(params: AppParams = {}) {
    const store = params.store ?? new MemoryStore(new MemoryDatabase())
    const options = resolveOptions(params.options)
    this.engine = new WorkflowEngine({
      registry: this.registry,
      openStore: async () => store,
      discover: params.discover ?? (async () => {}),
      maker: {
        make: async (target) => Reflect.construct(target as new () => object, []) as object,
      },
      options,
      deadLetterWorkflow: options.deadLetterWorkflow ?? undefined,
      logger: params.logger ?? this.log,
      inDevelopment: params.inDevelopment ?? false,
      transport: params.transport,
    })
  }

  /** One that has not been started. */
  worker(params: Omit<WorkerParams, 'engine'> = {}): DurableWorker {
    const worker = new DurableWorker({ engine: this.engine, ...params })
    this.#workers.push(worker)
    return worker
  }

  async work(params: Omit<WorkerParams, 'engine'> = {}): Promise<DurableWorker> {
    const worker = this.worker(params)
    await worker.start()
    return worker
  }

  async close(): Promise<void> {
    await cleanUp(
      () => Promise.all(this.#workers.map((worker) => worker.stop())),
      () => this.engine.stop()
    )
  }
}

import type { ChildState, Store } from '../contracts/store.ts'
import { claimKey } from '../core/name.ts'
import type { RunSummary } from '../core/run.ts'
import { type FoundWorker, servedKeys, workerOf } from './worker_descriptor.ts'

/** What commands read of runs beyond what the facade gives to applications. */
export class RunReader {
  #store: () => Promise<Store>

  constructor(store: () => Promise<Store>) {
    this.#store = store
  }

  /** Where the children stand that an operation has started. */
  async childStates(operation: { runId: string; seq: number }): Promise<ChildState[]> {
    const store = await this.#store()
    return store.childStates(operation)
  }

  /** What these runs failed with, encoded. Those without an error are left out. */
  async errorsOf(runIds: readonly string[]): Promise<{ runId: string; error: string }[]> {
    const store = await this.#store()
    return store.errorsOf(runIds)
  }

  /** The live worker of an instance; null = there is none. */
  async workerOf(instance: string): Promise<FoundWorker | null> {
    return workerOf(await this.#store(), instance)
  }

  /** Whether a live worker can execute the run. */
  async isServed({
    namespace,
    workflow,
    version,
  }: Pick<RunSummary, 'namespace' | 'workflow' | 'version'>): Promise<boolean> {
    const served = await servedKeys(await this.#store())
    return served.has(claimKey(namespace, workflow, version))
  }
}

import { randomUUID } from 'node:crypto'
import type { Store } from '../../src/contracts/store.ts'
import { claimKey, suspectKey } from '../../src/core/name.ts'
import { suspectFrom } from '../../src/core/recovery.ts'
import type { RunRow } from '../../src/core/run.ts'

const LEASE_MS = 1_000

/** Processes that take whatever is due and are never heard of again. */
export class DyingProcesses {
  #store: Store
  #cap: number | null

  /** @param params.cap `maxRecoveryAttempts` of these processes */
  constructor(store: Store, params: { cap: number | null }) {
    this.#store = store
    this.#cap = params.cap
  }

  /** One process takes the due runs of a workflow and dies; its lease expires, and its runs are found lost. */
  async takeAndDie(workflow: string, namespace = 'default'): Promise<RunRow[]> {
    const taken = await this.take(workflow, namespace)
    await this.findLost()
    return taken
  }

  /** One process takes the due runs of a workflow. */
  take(workflow: string, namespace?: string): Promise<RunRow[]> {
    return this.takeTogether([workflow], namespace)
  }

  /** One process takes the due runs of several workflows. */
  async takeTogether(workflows: readonly string[], namespace = 'default'): Promise<RunRow[]> {
    const owner = randomUUID()
    const worker = { instance: owner, name: owner, leaseMs: LEASE_MS, descriptor: '{}' }
    await this.#store.registerWorker({ ...worker, takeOver: false, ...this.#rule })
    const keys = workflows.map((workflow) => claimKey(namespace, workflow, '1'))
    const claimKeys = keys.flatMap((key) => [key, suspectKey(key)])
    return this.#store.claim({ owner, claimKeys, limit: 100 })
  }

  /** The leases of all of them are over, and the runs they had are due again. */
  async findLost(): Promise<void> {
    await this.#store.advanceClock(LEASE_MS + 1)
    await this.#store.recoverExpired(this.#rule)
  }

  get #rule() {
    return { suspectFrom: suspectFrom(this.#cap) }
  }
}

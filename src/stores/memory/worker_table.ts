import type { NewWorker, WorkerRow } from '../../contracts/store.ts'

type StoredWorker = WorkerRow & { leaseMs: number; isCounted: boolean }

/** The leases of processes. */
export class WorkerTable {
  #workers = new Map<string, StoredWorker>()

  register({ instance, name, leaseMs, descriptor, isCounted = true }: NewWorker, now: number) {
    const until = now + leaseMs
    const facts = { instance, name, leaseMs, descriptor, isCounted }
    this.#workers.set(instance, { ...facts, until, lost: false, startedAt: now })
  }

  /** False when the instance is unknown or marked lost. */
  renew(instance: string, now: number): boolean {
    const worker = this.#workers.get(instance)
    if (!worker || worker.lost) return false
    worker.until = now + worker.leaseMs
    return true
  }

  describe(instance: string, descriptor: string) {
    const worker = this.#workers.get(instance)
    if (worker) worker.descriptor = descriptor
  }

  remove(instance: string) {
    this.#workers.delete(instance)
  }

  /** Marks the workers that meet the condition lost, unless they are, and gives their instances. */
  markLost(isGone: (worker: Readonly<WorkerRow>) => boolean): string[] {
    const gone = [...this.#workers.values()].filter((worker) => !worker.lost && isGone(worker))
    for (const worker of gone) worker.lost = true
    return gone.map(({ instance }) => instance)
  }

  /** Whether the runs it loses count as recoveries. */
  isCounted(instance: string): boolean {
    return this.#workers.get(instance)?.isCounted ?? true
  }

  isLost(instance: string): boolean {
    return this.#workers.get(instance)?.lost ?? false
  }

  isKnown(instance: string): boolean {
    return this.#workers.has(instance)
  }

  /** In order of registration. */
  all(): WorkerRow[] {
    return [...this.#workers.values()].map(({ leaseMs, isCounted, ...worker }) => worker)
  }
}

import type { NewWorker, WorkerRow } from '../../contracts/store.ts'
import { E_INTERNAL } from '../../errors.ts'

type StoredWorker = WorkerRow & { leaseMs: number; isCounted: boolean; hadSuspect: boolean }

/** The leases of processes. */
export class WorkerTable {
  #workers = new Map<string, StoredWorker>()

  register({ instance, name, leaseMs, descriptor, isCounted = true }: NewWorker, now: number) {
    const until = now + leaseMs
    if (this.#workers.has(instance)) throw new E_INTERNAL([`worker ${instance} has a row`])
    const facts = { instance, name, leaseMs, descriptor, isCounted, hadSuspect: false }
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

  /** Marks the live workers that meet the condition lost, and gives their number. */
  markLost(params: {
    isGone: (worker: Readonly<WorkerRow>) => boolean
    hasSuspect: (instance: string) => boolean
  }): number {
    const gone = this.#live().filter((worker) => params.isGone(worker))
    for (const worker of gone) {
      worker.lost = true
      worker.hadSuspect = params.hasSuspect(worker.instance)
    }
    return gone.length
  }

  /** Forgets lost workers whose lease ended a lease ago, unless they own runs. */
  forget(params: { ownsRuns: (instance: string) => boolean; now: number }) {
    for (const { instance, lost, until, leaseMs } of [...this.#workers.values()])
      if (lost && until + leaseMs <= params.now && !params.ownsRuns(instance))
        this.#workers.delete(instance)
  }

  /** Whether the runs it loses count as recoveries; not those of an unknown one. */
  isCounted(instance: string): boolean {
    return this.#workers.get(instance)?.isCounted ?? false
  }

  /** Whether it executed a suspect when it was found lost. */
  hadSuspect(instance: string): boolean {
    return this.#workers.get(instance)?.hadSuspect ?? false
  }

  isLive(instance: string): boolean {
    return this.#workers.get(instance)?.lost === false
  }

  isKnown(instance: string): boolean {
    return this.#workers.has(instance)
  }

  /** In order of registration. */
  all(): WorkerRow[] {
    return [...this.#workers.values()].map(
      ({ leaseMs, isCounted, hadSuspect, ...worker }) => worker
    )
  }

  #live(): StoredWorker[] {
    return [...this.#workers.values()].filter(({ lost }) => !lost)
  }
}

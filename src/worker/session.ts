import { randomUUID } from 'node:crypto'
import type { NameLock, Store } from '../contracts/store.ts'
import type { Lease } from '../engine/lease.ts'
import type { RunLogger } from '../types/step.ts'
import { Loop } from './loop.ts'

interface SessionParams {
  store: Store
  /** Stable name, of which this process holds the lock. */
  name: string
  lock: NameLock
  leaseMs: number
  /** From which pickup on a lost run becomes a suspect. Default never. */
  suspectFrom?: number | undefined
  /** Whether lost runs count as recoveries. Default true. */
  isCounted?: boolean | undefined
  log: RunLogger
  descriptor: () => string
  /** The lease was recovered by others: every turn is void. A new instance follows at once. */
  onLost: () => void
}

const RETRY_MS = 500
/** Share of a lease by which this process lets it lapse before the store does. */
const CLOCK_MARGIN = 0.02

/**
 * The lease of a worker process: its row, renewed every third of its duration. When others have recovered it, the
 * process goes on as a new instance.
 */
export class WorkerSession implements Lease {
  #params: SessionParams
  #instance = randomUUID()
  #heldUntil = 0
  #healthySince = performance.now()
  #settled = Promise.withResolvers<boolean>()
  #loop: Loop

  constructor(params: SessionParams) {
    this.#params = params
    this.#loop = new Loop({
      pass: () => this.renew(),
      retryMs: Math.min(RETRY_MS, params.leaseMs / 6),
      onError: (err) => {
        this.#healthySince = Infinity
        params.log.warn({ err }, 'The lease could not be renewed; trying again')
      },
    })
  }

  get owner(): string {
    return this.#instance
  }

  get isHeld(): boolean {
    return performance.now() < this.#heldUntil
  }

  /** For how long, in ms, every renewal has succeeded in time; 0 while the lease is not held. */
  get healthyMs(): number {
    return this.isHeld ? Math.max(0, performance.now() - this.#healthySince) : 0
  }

  async held(): Promise<boolean> {
    if (this.isHeld) return true
    this.#loop.trigger()
    return this.#settled.promise
  }

  /**
   * Announces the process, takes over the runs of earlier instances of its name, and begins to renew. Resolves to how
   * many it took over.
   */
  async start(): Promise<number> {
    const takenOver = await this.#register({ takeOver: true })
    // Whoever has taken the name has taken the runs over too: a renewal finds out.
    this.#params.lock.onLost?.(() => this.#loop.trigger())
    this.#loop.start()
    return takenOver
  }

  /**
   * Stops renewing, takes the row away and frees the name; the runs have been released before. What the database
   * refuses is logged, since both come to pass by themselves. Idempotent.
   */
  async stop(): Promise<void> {
    await this.#loop.stop()
    this.#heldUntil = 0
    this.#settled.resolve(false)
    const { store, lock, log } = this.#params
    try {
      await store.removeWorker(this.#instance)
    } catch (err) {
      log.warn({ err }, 'The row of this worker could not be removed; it expires by itself')
    }
    try {
      await lock.release()
    } catch (err) {
      log.warn(
        { err },
        'The name of this worker could not be released; it is free when its connection is gone'
      )
    }
  }

  /** One renewal. */
  async renew(): Promise<number> {
    const { store, leaseMs, onLost } = this.#params
    const asked = performance.now()
    const isRenewed = await store.renewWorker(this.#instance)
    if (isRenewed) this.#hold(asked)
    else {
      this.#heldUntil = 0
      this.#settle(false)
      onLost()
      this.#instance = randomUUID()
      await this.#register({ takeOver: false })
    }
    // A renewal that was answered too late gave nothing: another follows at once.
    return this.isHeld ? leaseMs / 3 : 0
  }

  async #register({ takeOver }: { takeOver: boolean }): Promise<number> {
    const { store, name, leaseMs, descriptor, isCounted, suspectFrom } = this.#params
    const asked = performance.now()
    const worker = { instance: this.#instance, name, leaseMs, descriptor: descriptor(), takeOver }
    const rules = { isCounted, suspectFrom }
    const { takenOver } = await store.registerWorker({ ...worker, ...rules })
    this.#hold(asked)
    return takenOver
  }

  /**
   * The lease counts from before the request, since the store may have written at any time after it, and ends a little
   * earlier than there: the store judges in whole milliseconds, by a clock that runs at a pace of its own.
   */
  #hold(asked: number): void {
    const isInTime = this.isHeld && this.#healthySince !== Infinity
    if (!isInTime) this.#healthySince = performance.now()
    this.#heldUntil = asked + this.#params.leaseMs * (1 - CLOCK_MARGIN)
    if (this.isHeld) this.#settle(true)
  }

  #settle(isHeld: boolean): void {
    this.#settled.resolve(isHeld)
    this.#settled = Promise.withResolvers()
  }
}

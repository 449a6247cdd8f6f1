/**
 * The store's clock, followed between readings by this process's monotonic clock. Good for arming timers and for
 * `ctx.now()`; whether something is due is always judged by a reading.
 */
export class StoreClock {
  #reading = 0
  #readAt = 0
  #last = 0

  read(now: number): void {
    this.#reading = now
    this.#readAt = performance.now()
  }

  /** What was read last. */
  get lastReading(): number {
    return this.#reading
  }

  /** Ms UTC. */
  estimate(): number {
    return Math.floor(this.#reading + performance.now() - this.#readAt)
  }

  /** Ms UTC, never less than an earlier answer. */
  steady(): number {
    this.#last = Math.max(this.#last, this.estimate())
    return this.#last
  }
}

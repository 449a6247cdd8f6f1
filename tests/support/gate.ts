/** A place in a step at which a test meets it: the step arrives and waits, the test lets it go on. */
export class Gate {
  #arrivals: (() => void)[] = []
  #arrived = 0
  #waiting = new Set<() => void>()
  #isOpen = false

  /** How often it was reached. */
  get arrived(): number {
    return this.#arrived
  }

  /** Called by the step. An abort of `signal` ends the waiting with its reason. */
  async pass(signal?: AbortSignal): Promise<void> {
    this.#arrived++
    for (const resolve of this.#arrivals.splice(0)) resolve()
    if (this.#isOpen) return
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.#waiting.add(resolve)
    signal?.addEventListener('abort', () => reject(signal.reason), { once: true })
    await promise
  }

  /** Resolves once it has been reached `count` times in all. */
  async reached(count = 1): Promise<void> {
    while (this.#arrived < count) {
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#arrivals.push(resolve)
      await promise
    }
  }

  /** Lets everybody pass, now and later. */
  open(): void {
    this.#isOpen = true
    for (const resolve of this.#waiting) resolve()
    this.#waiting.clear()
  }
}

import { clearTimeout, setTimeout } from 'node:timers'
import { inCleanContext } from '../engine/clean_context.ts'

/** What one pass of a loop answers: in how many ms to look again, at the latest. */
export type Pass = () => Promise<number>

const LONGEST_TIMER_MS = 2_147_483_647

/**
 * Repeats a pass. `trigger` brings the next one forward; during a pass it causes another right after it. A pass that
 * fails is told and tried again after `retryMs`: a loop never ends by itself.
 */
export class Loop {
  #pass: Pass
  #onError: (error: unknown) => void
  #retryMs: number
  #timer: NodeJS.Timeout | undefined
  #running: Promise<void> | null = null
  #nextAt = Infinity
  #isTriggered = false
  #isStopped = true

  constructor(params: { pass: Pass; onError: (error: unknown) => void; retryMs: number }) {
    this.#pass = params.pass
    this.#onError = params.onError
    this.#retryMs = params.retryMs
  }

  /** No pass is under way. */
  get isAtRest(): boolean {
    return this.#running === null
  }

  start(): void {
    this.#isStopped = false
    this.trigger()
  }

  trigger(): void {
    if (this.#isStopped) return
    this.#isTriggered = true
    this.#running ??= inCleanContext(() => this.#run())
  }

  /** Brings the next pass forward to at most `ms` from now. */
  within(ms: number): void {
    if (this.#isStopped) return
    this.#nextAt = Math.min(this.#nextAt, performance.now() + ms)
    if (!this.#running) this.#arm()
  }

  /** Resolves when no pass is under way; none begins after. Idempotent. */
  async stop(): Promise<void> {
    this.#isStopped = true
    clearTimeout(this.#timer)
    await this.#running
  }

  async #run(): Promise<void> {
    clearTimeout(this.#timer)
    while (this.#isTriggered && !this.#isStopped) {
      this.#isTriggered = false
      this.#nextAt = Infinity
      const nextMs = await this.#attempt()
      this.#nextAt = Math.min(this.#nextAt, performance.now() + nextMs)
    }
    this.#running = null
    if (!this.#isStopped) this.#arm()
  }

  async #attempt(): Promise<number> {
    try {
      return await this.#pass()
    } catch (error) {
      this.#onError(error)
      this.#isTriggered = false
      return this.#retryMs
    }
  }

  #arm(): void {
    clearTimeout(this.#timer)
    const ms = Math.ceil(Math.max(0, this.#nextAt - performance.now()))
    this.#timer = setTimeout(() => this.trigger(), Math.min(ms, LONGEST_TIMER_MS))
  }
}

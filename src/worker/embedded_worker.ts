import { Loop } from './loop.ts'
import type { DurableWorker } from './worker.ts'

const RETRY_MS = 5_000

export interface EmbeddedWorkerParams {
  /** Makes a worker and starts it; another one at each attempt. */
  start: () => Promise<DurableWorker>
  /** Told of each attempt that has failed. */
  onError: (error: unknown) => void
  /** Pause between two attempts, in ms. Default 5 s. */
  retryMs?: number | undefined
}

/** The worker beside a web server, which may be up before its database is: one that cannot start is tried again. */
export class EmbeddedWorker {
  #worker: DurableWorker | null = null
  #attempted = Promise.withResolvers<void>()
  #attempts: Loop
  #isStopped = false

  constructor({ start, onError, retryMs = RETRY_MS }: EmbeddedWorkerParams) {
    this.#attempts = new Loop({
      pass: async () => {
        this.#worker = await start()
        this.#attempted.resolve()
        return Infinity
      },
      onError: (error) => {
        onError(error)
        this.#attempted.resolve()
      },
      retryMs,
    })
  }

  /** Resolves after the first attempt, whatever has come of it. After `stop` it attempts nothing. */
  async start(): Promise<void> {
    if (this.#isStopped) return
    this.#attempts.start()
    return this.#attempted.promise
  }

  /** Lets an attempt under way end, and stops the worker. Idempotent. */
  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#attempts.stop()
    await this.#worker?.stop()
  }
}

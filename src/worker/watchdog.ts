import { extname } from 'node:path'
import { clearInterval, setInterval } from 'node:timers'
import { Worker } from 'node:worker_threads'

/** How often the main loop shows that it turns, as a share of `hangMs`. */
const BEATS = 10

/**
 * Ends the process with SIGKILL when its event loop has not turned for `hangMs`: its runs have been lost to others by
 * then, and a supervisor starts it again. The thread counts its own ticks, so that a process that was stopped and
 * continued is not taken for one that hangs.
 */
export class Watchdog {
  #thread: Worker
  #beat: NodeJS.Timeout

  constructor(hangMs: number) {
    const shared = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)
    const counter = new Int32Array(shared)
    const intervalMs = Math.max(1, Math.floor(hangMs / BEATS))
    this.#beat = setInterval(() => Atomics.add(counter, 0, 1), intervalMs)
    this.#beat.unref()
    const file = new URL(`./watchdog_thread${extname(import.meta.url)}`, import.meta.url)
    this.#thread = new Worker(file, { workerData: { shared, intervalMs, beats: BEATS } })
    this.#thread.unref()
  }

  async stop(): Promise<void> {
    clearInterval(this.#beat)
    await this.#thread.terminate()
  }
}

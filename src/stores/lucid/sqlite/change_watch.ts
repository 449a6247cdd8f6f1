import { clearInterval, setInterval } from 'node:timers'
/** How often the database is asked whether others have written; it takes a few microseconds. */
const POLL_MS = 50

/**
 * Tells listeners that another connection has written to the database. The timer runs while there are listeners and
 * keeps no process alive.
 */
export class ChangeWatch {
  #version: () => number
  #listeners = new Set<{ call: () => void }>()
  #timer: NodeJS.Timeout | undefined
  #seen = 0

  /** @param version a number that changes only when another connection has written; may throw, and is asked again */
  constructor(version: () => number) {
    this.#version = version
  }

  add(listener: () => void): () => void {
    const entry = { call: listener }
    this.#listeners.add(entry)
    if (this.#timer === undefined) {
      this.#seen = this.#read() ?? this.#seen
      this.#timer = setInterval(() => this.#poll(), POLL_MS).unref()
    }
    return () => {
      this.#listeners.delete(entry)
      if (this.#listeners.size === 0) this.#stopTimer()
    }
  }

  tell(): void {
    for (const { call } of this.#listeners) call()
  }

  /** Idempotent. Listeners are forgotten. */
  stop(): void {
    this.#listeners.clear()
    this.#stopTimer()
  }

  #stopTimer() {
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #poll() {
    const version = this.#read()
    if (version === undefined || version === this.#seen) return
    this.#seen = version
    this.tell()
  }

  /** Undefined when the database cannot answer now: then there is nothing to tell either. */
  #read(): number | undefined {
    try {
      return this.#version()
    } catch {
      return undefined
    }
  }
}

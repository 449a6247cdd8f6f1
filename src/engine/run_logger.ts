import type { RunLogger } from '../types/step.ts'

/** The application's logger, as far as the engine needs it. */
export interface EngineLogger extends RunLogger {
  /** A logger whose every line carries these facts. Without it lines are logged as they are. */
  child?(facts: Record<string, unknown>): RunLogger
}

/** A logger whose lines carry the facts of a run or a step. It is made when the first line is: most log none. */
export class BoundLogger implements RunLogger {
  #log: EngineLogger
  #facts: Record<string, unknown>
  #bound: RunLogger | undefined

  constructor(log: EngineLogger, facts: Record<string, unknown>) {
    this.#log = log
    this.#facts = facts
  }

  debug(...args: [unknown, ...unknown[]]): void {
    this.#logger.debug(...args)
  }

  info(...args: [unknown, ...unknown[]]): void {
    this.#logger.info(...args)
  }

  warn(...args: [unknown, ...unknown[]]): void {
    this.#logger.warn(...args)
  }

  error(...args: [unknown, ...unknown[]]): void {
    this.#logger.error(...args)
  }

  get #logger(): RunLogger {
    this.#bound ??= this.#log.child?.(this.#facts) ?? this.#log
    return this.#bound
  }
}

import { clearTimeout, setTimeout } from 'node:timers'
import type { ExecutionParams } from './execution.ts'
import type { RunEvent } from './events.ts'

/** Tells that a run does nothing that the engine can see, once that has lasted for `stallMs`. */
export class StallTimer {
  #params: Pick<ExecutionParams, 'stalled' | 'events' | 'options'>
  #run: RunEvent
  #timer: NodeJS.Timeout | undefined

  constructor(run: RunEvent, params: Pick<ExecutionParams, 'stalled' | 'events' | 'options'>) {
    this.#run = run
    this.#params = params
  }

  arm(): void {
    const { stalled, events, options } = this.#params
    this.#timer = setTimeout(() => {
      stalled.add(this.#run.runId)
      events.emit('run.stalled', this.#run)
    }, options.stallMs)
    this.#timer.unref()
  }

  /** It goes on, or has ended. */
  end(): void {
    clearTimeout(this.#timer)
    this.#params.stalled.delete(this.#run.runId)
  }
}

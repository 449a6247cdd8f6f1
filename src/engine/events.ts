import { publish } from '../channels.ts'
import type { SerializedError } from '../core/serialized_error.ts'

/** The names of all events of runs. */
export const RUN_EVENT_NAMES = [
  'run.started',
  'run.completed',
  'run.routed',
  'run.unrouted',
  'run.failed',
  'run.cancelled',
  'run.blocked',
  'run.stalled',
] as const
export type RunEventName = (typeof RUN_EVENT_NAMES)[number]

/** What happens to runs in this process, for log lines and listeners. */
export interface RunEvents extends Record<RunEventName, RunEvent> {
  /** A worker executes the run for the first time. */
  'run.started': RunEvent
  'run.completed': RunEvent
  /** Its compensations, if it was to run any, are over. Told by the process that cancelled it or ran them. */
  'run.cancelled': RunEvent
  /** A failure was handed to a handler run. */
  'run.routed': RunEvent & { error: SerializedError; handlerRunId: string }
  /** A route matched a failure and was not followed. */
  'run.unrouted': RunEvent & { error: SerializedError; reason: string }
  /** It ended `failed`, or `dead` as `status` says: of a dead run this comes before `onDead`. */
  'run.failed': RunEvent & { error: SerializedError; status: 'failed' | 'dead' }
  /** The history does not fit the code, or the body awaited something foreign. */
  'run.blocked': RunEvent & { error: SerializedError }
  /** The body neither called nor awaited anything of `ctx` for `stallMs`, or was not even there by then. */
  'run.stalled': RunEvent
}

export interface RunEvent {
  runId: string
  workflow: string
  version: string
  namespace: string
}

type Listener<Name extends RunEventName> = (event: RunEvents[Name]) => void

/**
 * Listeners are called synchronously; what one throws neither reaches the engine nor the other listeners. Every event
 * is published on its diagnostics channel too.
 */
export class RunEventEmitter {
  #listeners = new Map<RunEventName, Set<Listener<never>>>()
  #onError: (error: unknown) => void

  constructor(onError: (error: unknown) => void) {
    this.#onError = onError
  }

  on<Name extends RunEventName>(name: Name, listener: Listener<Name>): () => void {
    const listeners = this.#listeners.get(name) ?? new Set()
    this.#listeners.set(name, listeners.add(listener as Listener<never>))
    return () => listeners.delete(listener as Listener<never>)
  }

  emit<Name extends RunEventName>(name: Name, event: RunEvents[Name]): void {
    for (const listener of this.#listeners.get(name) ?? []) {
      try {
        ;(listener as Listener<Name>)(event)
      } catch (error) {
        this.#onError(error)
      }
    }
    publish(name, event)
  }
}

import type { RunRow } from '../core/run.ts'
import { isCancelled } from '../core/unwinding.ts'
import { AbortError } from '../errors.ts'

/** Another worker may execute the run. */
export function leaseLost(): AbortError {
  return new AbortError('lease_lost', 'The run is not executed under this lease any more')
}

export function cancelled(): AbortError {
  return new AbortError('cancelled', 'The run was cancelled')
}

export function stopping(): AbortError {
  return new AbortError('worker_stopping', 'The worker is shutting down')
}

/** @param why a sentence: what has become of the turn */
export function turnOver(why: string): AbortError {
  return new AbortError('turn_over', why)
}

export function stepTimeout(step: string, timeoutMs: number): AbortError {
  return new AbortError('step_timeout', `Step "${step}" ran longer than ${timeoutMs} ms`)
}

/** Why what was executed as `held` is over here: a cancel takes a run from its worker, and so does a claim. */
export function takenAway(
  held: Pick<RunRow, 'phase' | 'errorCode'>,
  now: Pick<RunRow, 'status' | 'phase' | 'errorCode'>
): AbortError {
  const isCancel = now.status === 'cancelled' || (isCancelled(now) && !isCancelled(held))
  return isCancel ? cancelled() : leaseLost()
}

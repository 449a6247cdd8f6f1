import { type Dispatch, isInFlight } from '../core/dispatch.ts'
import type { OperationIdentity } from '../core/history.ts'
import { type Operation, OperationPromise, silence } from './operation.ts'

/** An operation that the body has called and that has not been delivered. */
export interface OpenCall extends OperationIdentity {
  operation: Operation
  promise: OperationPromise<unknown>
  resolve: (value: unknown) => void
  reject: (reason: unknown) => void
  /** Monotonic ms. */
  calledAt: number
  /** A row of its wait is in the store, or on its way there. */
  hasWait: boolean
  /** As in the wait that was found open. */
  target: string | null
  /** As in the wait that was found open. */
  inputs: number | null
  /** When its wait is over by time, by the store's clock; null = never, or not known yet. */
  dueAt: number | null
  /** Its due time has come, and it has not been told. */
  isDue: boolean
  /** What was sent to workers for it. */
  dispatch: Dispatch | null
  /** Encoded error of its last failed attempt. */
  error: string | null
  /** Failed attempts so far, or attempts made once it is over. */
  attempts: number
  /** `called`: not begun. `running`: its code is at work here. `waiting`: for the outside. */
  state: 'called' | 'running' | 'waiting' | 'over'
}

export function identityOf({ seq, kind, name, after }: OpenCall): OperationIdentity {
  return { seq, kind, name, after }
}

export function isWaiting({ state }: OpenCall): boolean {
  return state === 'waiting'
}

/** Whether its code may be at work in another process. */
export function isElsewhere(call: OpenCall): boolean {
  return isWaiting(call) && isInFlight(call)
}

/** Whether its code may be at work, here or elsewhere. */
export function isAtWork(call: OpenCall): boolean {
  return call.state === 'running' || isElsewhere(call)
}

/** What the body is given for a call, with what settles it. */
export function operationPromise(): Pick<OpenCall, 'promise' | 'resolve' | 'reject'> {
  const parts = OperationPromise.withResolvers<unknown>() as Pick<
    OpenCall,
    'promise' | 'resolve' | 'reject'
  >
  silence(parts.promise)
  return parts
}

/** How an attempt of a step ended; payloads encoded. */
export type StepOutcome =
  { status: 'completed'; output: string } | { status: 'failed'; error: string }

/** What identifies an attempt that other processes execute. */
export interface DispatchKey {
  runId: string
  /** Position of the step in its run. */
  seq: number
  /** The same for all attempts of one operation; another one once a requeue has retired the operation. */
  generation: number
  /** From 1. */
  attempt: number
}

/** What became of an attempt. */
export interface StepResult extends DispatchKey {
  /** Id of the message that it answers. */
  dispatchId: string
  outcome: StepOutcome
}

/** What a wait knows of the messages that were sent for it. */
export interface Dispatch {
  generation: number
  /** Of the last message. */
  attempt: number
  /** Id of the last message. */
  id: string
  /** How often the last attempt was sent again. */
  redispatches: number
  /** How far a heartbeat puts the deadline off, in ms; null = not at all: the attempt has a time limit of its own. */
  silenceMs: number | null
}

/**
 * Whether somebody may be executing an attempt now; false between two attempts.
 *
 * @param wait.attempts those that have failed
 */
export function isInFlight(wait: { attempts: number; dispatch: Dispatch | null }): boolean {
  return wait.dispatch !== null && wait.dispatch.attempt > wait.attempts
}

/** Whether what a worker says counts: the success of any attempt, a failure only of the one in flight. */
export function isAccepted(
  wait: { attempts: number; dispatch: Dispatch | null },
  { generation, attempt, outcome }: Pick<StepResult, 'generation' | 'attempt' | 'outcome'>
): boolean {
  const { dispatch } = wait
  if (!dispatch || generation !== dispatch.generation || attempt > dispatch.attempt) return false
  return outcome.status === 'completed' || (attempt === dispatch.attempt && isInFlight(wait))
}

import type { NewChild } from '../../core/change_set.ts'
import type { ChildOutcome } from '../../core/history.ts'
import { decode, encode } from '../../core/payload.ts'
import {
  decodeError,
  encodeError,
  type SerializedError,
  type TakenId,
} from '../../core/serialized_error.ts'
import { isTerminal } from '../../core/run.ts'
import { ChildError, E_RESULT_IN_BODY } from '../../errors.ts'
import type { ChildHandle } from '../../types/context.ts'
import {
  type Begin,
  type FoundWait,
  type Operation,
  type Outcome,
  WAITS_FOR_NOTHING,
} from '../operation.ts'

/** Makes the run that an operation starts, once its position is known. */
export type ChildFactory = (position: { seq: number; index: number }) => NewChild

/** Starts a child and waits for its end. */
export function childOperation(params: { workflow: string; child: ChildFactory }): Operation {
  const { workflow, child } = params
  /** A run that was requeued may have another child at this position. */
  let id: string | null = null
  return {
    kind: 'child',
    name: workflow,
    begin(seq) {
      const started = child({ seq, index: 0 })
      id = started.run.id
      return { kind: 'wait', wait: { target: id }, children: [started] }
    },
    resume(wait, children) {
      id = wait.target
      const mismatch = otherRun('child', { workflow, child, wait })
      if (mismatch) return mismatch
      const known = children.find(({ runId }) => runId === id)
      return known && isTerminal(known.status)
        ? { kind: 'fetch' }
        : { kind: 'wait', wait: null, children: [] }
    },
    take(event) {
      if (event.type !== 'child' || event.entry.childId !== id) return { kind: 'ignored' }
      switch (event.entry.event) {
        case 'completed':
        case 'failed':
          return { kind: 'fetch' }
        case 'taken':
          return { kind: 'outcome', outcome: idTaken(event.entry.childId) }
        case 'started':
          return { kind: 'ignored' }
      }
    },
    needs: () => 1,
    outcomeOf(children) {
      const outcome = children.find(({ runId }) => runId === id)
      return outcome ? outcomeOfChild(outcome, workflow) : null
    },
    receive(outcome) {
      if (outcome.status === 'completed') return decode(outcome.output)
      throw childError(outcome.error)
    },
  }
}

/**
 * Starts a child without waiting for its end. With an id of the caller's choice it waits for the answer, since
 * another run may have it; a derived id is nobody else's, so the write that starts it also records it.
 */
export function startChildOperation(params: {
  workflow: string
  child: ChildFactory
  hasOwnId: boolean
}): Operation {
  const { workflow, child, hasOwnId } = params
  return {
    ...WAITS_FOR_NOTHING,
    kind: 'start_child',
    name: workflow,
    begin(seq) {
      const started = child({ seq, index: 0 })
      if (hasOwnId) return { kind: 'wait', wait: { target: started.run.id }, children: [started] }
      return { kind: 'done', output: encode(started.run.id), children: [started], signals: [] }
    },
    resume: (wait) =>
      otherRun('start_child', { workflow, child, wait }) ?? {
        kind: 'wait',
        wait: null,
        children: [],
      },
    take(event) {
      if (event.type !== 'child') return { kind: 'ignored' }
      const { event: what, childId } = event.entry
      const started: Outcome = { status: 'completed', output: encode(childId) }
      return { kind: 'outcome', outcome: what === 'taken' ? idTaken(childId) : started }
    },
    receive(outcome) {
      if (outcome.status === 'completed') return handleOf(String(decode(outcome.output)))
      throw childError(outcome.error)
    },
  }
}

/** What to say when the code asks for a run of another id than the one that is waited for. */
function otherRun(
  kind: 'child' | 'start_child',
  params: { workflow: string; child: ChildFactory; wait: FoundWait }
): Begin | null {
  const { workflow, child, wait } = params
  const { id } = child({ seq: wait.seq, index: 0 }).run
  if (id === wait.target) return null
  const called = (run: string | null) => `${kind} "${workflow}" of run ${run}`
  return { kind: 'mismatch', asked: called(id), recorded: called(wait.target) }
}

/**
 * The handle of a child. Where its type is that of a run started by the engine, as `dispatch` declares, there seems to
 * be a `result()`: that says what to call instead. It is not enumerable, so the handle can be stored.
 */
function handleOf(runId: string): ChildHandle {
  const refuse = () => {
    throw new E_RESULT_IN_BODY([runId])
  }
  return Object.defineProperty({ runId }, 'result', { value: refuse })
}

/** What a body catches, made of what `outcomeOfChild` recorded. */
export function childError(recorded: string): ChildError {
  const { status, ...error } = decodeError(recorded) as ChildFailure
  const runId = error.runId ?? (error.details as TakenId).runId
  return new ChildError(error, { runId, status, attempts: 1 })
}

interface ChildFailure extends SerializedError {
  status: ChildError['status']
}

/** What a parent records of an ended child; null = it has not ended. A failure keeps the child's own code. */
export function outcomeOfChild(child: ChildOutcome, workflow: string): Outcome | null {
  const { runId, status } = child
  switch (status) {
    case 'pending':
    case 'running':
    case 'suspended':
    case 'blocked':
      return null
    case 'completed':
      return { status: 'completed', output: child.output! }
    case 'failed':
    case 'cancelled':
    case 'dead': {
      const own = child.error === null ? NO_ERROR(workflow, status) : decodeError(child.error)
      // The child's stack stays with the child.
      delete own.stack
      return failure({ ...own, code: own.code ?? 'child_failed', runId, status })
    }
  }
}

/** The outcome of a child whose id another run has. It names no child: there is none. */
export function idTaken(runId: string): Outcome {
  const details: TakenId = { runId }
  return failure({
    name: 'ChildError',
    message: `The run id "${runId}" belongs to another run. Pass another id, or none`,
    code: 'run_id_taken',
    retryable: false,
    details,
    status: 'failed',
  })
}

function failure(error: ChildFailure): Outcome {
  return { status: 'failed', error: encodeError(error) }
}

const NO_ERROR = (workflow: string, status: string): SerializedError => ({
  name: 'ChildError',
  message: `The run of "${workflow}" is ${status}`,
})

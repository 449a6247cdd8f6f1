import { type Dispatch, isAccepted, isInFlight } from '../../core/dispatch.ts'
import type { ResultEntry } from '../../core/history.ts'
import { decode } from '../../core/payload.ts'
import { decideRetry, retryPolicy } from '../../core/retry_policy.ts'
import { decodeError, encodeError } from '../../core/serialized_error.ts'
import { StepError } from '../../errors.ts'
import type { StepOptions } from '../../types/step.ts'
import {
  type Begin,
  type Compensation,
  type FoundWait,
  type Operation,
  type Outcome,
  type OutsideEvent,
  type StepOrder,
  type Taken,
  WAITS_FOR_NOTHING,
  type WaitTerms,
} from '../operation.ts'

/** How steps are left to other processes. */
export interface Dispatching {
  /** After so long without a sign of life an attempt is sent again, unless it has a time limit. Ms. */
  reconcileMs: number
  /** How often an attempt is sent again before it counts as lost. */
  redispatchMax: number
  /** The token under which the run is executed now. */
  token: () => number
  newId: () => string
  /** In [0, 1). */
  jitter: () => number
  /** Whether a handler for the step is registered here. */
  isKnown: (step: string) => boolean
  /** What the definition of the step says, where it is known. */
  optionsOf: (step: string) => StepTerms
}

type StepTerms = Pick<StepOptions, 'retries' | 'timeoutMs' | 'backoffMs'>

interface DispatchedStepParams {
  /** The step as it is executed beside its body. */
  step: Operation
  /** Encoded. */
  input: string
  call: StepTerms
  dispatching: Dispatching
}

/**
 * A step that is sent to whoever has a handler for it. Its wait has a deadline, at which the attempt is sent again, and
 * its result comes through the inbox. Once sent it is left to the workers for good, though the handler may have become
 * known here since.
 */
export class DispatchedStep implements Operation {
  readonly kind = 'step'
  readonly name: string
  readonly compensation: Compensation | null
  readonly needs = WAITS_FOR_NOTHING.needs
  readonly outcomeOf = WAITS_FOR_NOTHING.outcomeOf
  #input: string
  #terms: StepTerms
  #dispatching: Dispatching
  /** Null: no handler for it is known here. */
  #here: Operation | null
  #seq = 0
  /** Failed attempts so far. */
  #attempts = 0
  /** Encoded error of the last one. */
  #error: string | null = null
  #dispatch: Dispatch | null = null

  constructor({ step, input, call, dispatching }: DispatchedStepParams) {
    this.name = step.name
    this.compensation = step.compensation ?? null
    const defined = dispatching.optionsOf(step.name)
    this.#input = input
    this.#terms = {
      retries: call.retries ?? defined.retries,
      timeoutMs: call.timeoutMs ?? defined.timeoutMs,
      backoffMs: call.backoffMs ?? defined.backoffMs,
    }
    this.#dispatching = dispatching
    this.#here = dispatching.isKnown(step.name) ? step : null
  }

  begin(seq: number): Begin {
    this.#seq = seq
    return this.#here?.begin(seq) ?? { ...this.#sendNext(), children: [] }
  }

  resume(wait: FoundWait): Begin {
    this.#seq = wait.seq
    this.#attempts = wait.attempts
    this.#error = wait.error
    this.#dispatch = wait.dispatch
    if (this.#here && !wait.dispatch) return this.#here.resume(wait, [])
    if (wait.dueAt === null) return { ...this.#sendNext(), children: [] }
    return { kind: 'wait', wait: null, children: [] }
  }

  take(event: OutsideEvent): Taken {
    switch (event.type) {
      case 'due':
        return this.#dueTaken(event)
      case 'result':
        return this.#resultTaken(event.entry)
      case 'signal':
      case 'child':
        return { kind: 'ignored' }
    }
  }

  receive(outcome: Outcome, attempts: number): unknown {
    if (outcome.status === 'completed') return decode(outcome.output)
    throw new StepError(decodeError(outcome.error), attempts)
  }

  #dueTaken(event: OutsideEvent): Taken {
    const dispatch = this.#dispatch
    if (!dispatch) return this.#here?.take(event) ?? this.#sendNext()
    if (!isInFlight({ dispatch, attempts: this.#attempts })) return this.#sendNext()
    return this.#sendAgain(dispatch)
  }

  #resultTaken(entry: ResultEntry): Taken {
    const dispatch = this.#dispatch
    if (!dispatch || !isAccepted({ dispatch, attempts: this.#attempts }, entry))
      return { kind: 'ignored' }
    const { outcome } = entry
    return outcome.status === 'completed'
      ? { kind: 'outcome', outcome, attempts: dispatch.attempt }
      : this.#fail(dispatch, outcome.error)
  }

  #fail(dispatch: Dispatch, error: string): Taken {
    const { attempt } = dispatch
    const decision = decideRetry({
      error: decodeError(error),
      attempt,
      policy: retryPolicy(this.#terms),
      jitter: this.#dispatching.jitter(),
    })
    if (decision.kind === 'give_up')
      return { kind: 'outcome', outcome: { status: 'failed', error }, attempts: attempt }
    this.#attempts = attempt
    this.#error = error
    return { kind: 'wait', wait: this.#waitTerms(dispatch, decision.delayMs), order: null }
  }

  #sendNext() {
    const dispatching = this.#dispatching
    const hasLimit = this.#terms.timeoutMs !== undefined
    return this.#send({
      generation: this.#dispatch?.generation ?? dispatching.token(),
      attempt: this.#attempts + 1,
      id: dispatching.newId(),
      redispatches: 0,
      silenceMs: hasLimit ? null : dispatching.reconcileMs,
    })
  }

  #sendAgain(dispatch: Dispatch): Taken {
    const { newId, redispatchMax } = this.#dispatching
    const { attempt, redispatches } = dispatch
    if (redispatches < redispatchMax)
      return this.#send({ ...dispatch, id: newId(), redispatches: redispatches + 1 })
    const error = encodeError({
      name: 'StepLost',
      message:
        `Nobody has answered for attempt ${attempt} of step "${this.name}", which was sent ${redispatches + 1} times. ` +
        'Is a worker running that has the step?',
      code: 'step_lost',
      retryable: false,
    })
    return { kind: 'outcome', outcome: { status: 'failed', error }, attempts: attempt }
  }

  #send(dispatch: Dispatch) {
    const { generation, attempt, id: dispatchId, silenceMs } = dispatch
    const { timeoutMs = null } = this.#terms
    this.#dispatch = dispatch
    const order: StepOrder = {
      ...{ seq: this.#seq, name: this.name, input: this.#input, generation, attempt, dispatchId },
      ...{ timeoutMs, silenceMs },
    }
    const deadlineMs = timeoutMs ?? this.#dispatching.reconcileMs
    return { kind: 'wait' as const, wait: this.#waitTerms(dispatch, deadlineMs), order }
  }

  #waitTerms(dispatch: Dispatch, dueIn: number): WaitTerms {
    return { attempts: this.#attempts, error: this.#error, dispatch, dueIn }
  }
}

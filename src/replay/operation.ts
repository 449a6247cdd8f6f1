import type { NewChild, SignalSend } from '../core/change_set.ts'
import type { StepOutcome } from '../core/dispatch.ts'
import type {
  ChildEntry,
  ChildOutcome,
  NewWait,
  OperationIdentity,
  ResultEntry,
  SignalEntry,
  Wait,
} from '../core/history.ts'
import type { RunStatus } from '../core/run.ts'
import type { StepCall, StepContext } from '../types/step.ts'

/** How an operation ended; payloads encoded. */
export type Outcome = StepOutcome

/** Code to run here: the attempts of one local or in-process step. */
export interface StepTask {
  seq: number
  name: string
  /** Failed attempts so far. */
  attempts: number
  /** A local step's function, or the encoded input for the handler registered under `name`. */
  work: { local: (step: StepContext) => unknown } | { input: string }
  call: Pick<StepCall<unknown>, 'retries' | 'timeoutMs' | 'backoffMs'>
}

/** An attempt for another process to execute. */
export interface StepOrder {
  seq: number
  name: string
  /** Encoded. */
  input: string
  generation: number
  attempt: number
  dispatchId: string
  /** Ms; null = none. */
  timeoutMs: number | null
  silenceMs: number | null
}

/** What of a wait the operation decides; its identity comes from its position. */
export type WaitTerms = Partial<Omit<NewWait, keyof OperationIdentity>>

/** What an operation wants when it begins, or is found open in the history. */
export type Begin =
  | { kind: 'run'; task: StepTask }
  /** Wait for the outside; `wait` is null when its row stands already. `order` goes out once the wait is durable. */
  | { kind: 'wait'; wait: WaitTerms | null; children: readonly NewChild[]; order?: StepOrder }
  /** Over with the write that records it. */
  | { kind: 'done'; output: string; children: readonly NewChild[]; signals: readonly SignalSend[] }
  /** Everything it waited for has happened: its outcome is in its children's rows. */
  | { kind: 'fetch' }
  /** Its wait is not one of this call. */
  | { kind: 'mismatch'; asked: string; recorded: string }

export type OutsideEvent =
  | { type: 'signal'; entry: SignalEntry }
  | { type: 'child'; entry: ChildEntry }
  | { type: 'result'; entry: ResultEntry }
  /** The due time of its wait has come. */
  | { type: 'due' }

/** What an event from outside means for an open operation. */
export type Taken =
  | { kind: 'ignored' }
  /** `attempts`: how many were made; left out where the operation has none. */
  | { kind: 'outcome'; outcome: Outcome; attempts?: number }
  | { kind: 'fetch' }
  | { kind: 'run'; task: StepTask }
  /** It waits on, by other terms; null = nothing is sent. */
  | { kind: 'wait'; wait: WaitTerms; order: StepOrder | null }
  | { kind: 'children'; children: readonly NewChild[] }

/** Code that undoes an operation: a function of its output, or a registered step by name. */
export type Compensation =
  { undo: (output: unknown, step: StepContext) => unknown } | { step: string }

/** The state of a child as a wait that is found open needs it. */
export interface KnownChild {
  index: number
  runId: string
  status: RunStatus
}

/** What an operation is told of its wait when that is found open. */
export type FoundWait = Pick<
  Wait,
  'seq' | 'target' | 'inputs' | 'dueAt' | 'attempts' | 'error' | 'dispatch'
>

/** One operation of a body: a small state machine that says what it wants and what events mean. */
export interface Operation {
  readonly kind: OperationIdentity['kind']
  readonly name: string
  /** Called once, when everything recorded has been delivered. */
  begin(seq: number): Begin
  /** Called instead of `begin` when the operation's wait stands already. */
  resume(wait: FoundWait, children: readonly KnownChild[]): Begin
  take(event: OutsideEvent): Taken
  /** How many more ends of children make it worth waking the run; null = it does not wait for children. */
  needs(): number | null
  /** The outcome, once `fetch` was asked for; null = a child has not ended after all. */
  outcomeOf(children: readonly ChildOutcome[]): Outcome | null
  /** How to undo it, given its output; undefined when its outcome is not known. Null = it needs no undoing. */
  readonly compensation?: Compensation | null
  /** The value the body gets; throws what the body catches. */
  receive(outcome: Outcome, attempts: number): unknown
}

/** Parts that most operations share: those that wait for neither children nor the outside. */
export const WAITS_FOR_NOTHING = {
  take: (): Taken => ({ kind: 'ignored' }),
  needs: () => null,
  outcomeOf: () => null,
}

/**
 * The promise a body gets. It knows whether anybody ever listened, so that a forgotten `await` is found;
 * what is derived from it are ordinary promises.
 */
export class OperationPromise<T> extends Promise<T> {
  static override get [Symbol.species]() {
    return Promise
  }

  listened = false

  override then<A = T, B = never>(
    onFulfilled?: ((value: T) => A | PromiseLike<A>) | null,
    onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null
  ): Promise<A | B> {
    this.listened = true
    return super.then(onFulfilled, onRejected)
  }
}

/** Keeps a rejection from being reported as unhandled, without counting as a listener. */
export function silence(promise: Promise<unknown>): void {
  void Promise.prototype.then.call(promise, undefined, () => {})
}

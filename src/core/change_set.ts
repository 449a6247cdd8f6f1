import type { StepResult } from './dispatch.ts'
import type { NewRecord, NewWait, SignalEntry } from './history.ts'
import type { NewRun, RunRow } from './run.ts'

/** What becomes of a run when a turn's write is applied. */
export type TurnEnd =
  /** The turn goes on under the same lease. */
  | { kind: 'continue' }
  | {
      kind: 'suspend'
      /** How many ends of children the run needs before it is worth waking; null = any entry wakes it. */
      needs: number | null
      /** Earliest due time of its waits: known instants, and durations counted from this write. */
      dueAt: number | null
      dueIn: number | null
    }
  | { kind: 'complete'; output: string }
  | { kind: 'fail'; error: string; errorCode: string }
  /** The history does not fit the code: offered again after `retryIn` ms. */
  | { kind: 'block'; error: string; errorCode: string; retryIn: number }
  /** Handed back by a worker that stops: due at once, not counted as a recovery. */
  | { kind: 'release' }
  /** The body has failed, or a cancel was asked for: the lease goes on, for the compensations. */
  | { kind: 'unwind'; error: string; errorCode: string }
  /** The failure is handed to a handler run, whose outcome becomes that of the run. */
  | { kind: 'follow'; error: string; errorCode: string; tag: string }
  /** Picked up once too often. */
  | { kind: 'die'; error: string; errorCode: string }
  /** The compensations of a cancelled run are over. */
  | { kind: 'cancel'; error: string; errorCode: string }

/** A child that a turn starts. */
export interface NewChild {
  run: NewRun
  /** The parent gets an inbox entry that says whether the child was started. */
  acknowledge: boolean
}

/** A signal on its way to whoever waits for its token. */
export interface SignalSend {
  /** Minted by the sender; a signal is delivered once per id. */
  id: string
  token: string
  /** Encoded. */
  payload: string
}

/**
 * Everything a turn wants written, as plain data. Applied whole, or, when `token` is not the run's
 * current one, not at all.
 */
export interface ChangeSet {
  type: 'turn'
  runId: string
  token: number
  records: readonly NewRecord[]
  opened: readonly NewWait[]
  /** Positions whose waits are over. */
  closed: readonly number[]
  /**
   * Number of the newest inbox entry the turn has taken: entries up to it are deleted. A higher one on the
   * row makes a suspending run due at once.
   */
  seenInbox: number
  /**
   * Signals that this turn has taken and whose wait was over before: each goes to the next run that waits for it, or is
   * kept. A signal that is no longer in the inbox is left out: it was returned when its wait was closed.
   */
  returned: readonly SignalEntry[]
  children: readonly NewChild[]
  signals: readonly SignalSend[]
  end: TurnEnd
}

/** Stores a run, at once due or already leased to its starter. */
export interface StartWrite {
  type: 'start'
  run: NewRun
  /** Instance id of the worker that will execute it at once; null = whoever claims it. */
  leaseTo: string | null
}

/** A signal from outside a run. */
export interface SignalWrite {
  type: 'signal'
  signal: SignalSend
}

/**
 * Cancels a run and the children it awaits, whoever holds their leases. With `compensate`, they undo their steps
 * first.
 */
export interface CancelWrite {
  type: 'cancel'
  runId: string
  compensate: boolean
  /**
   * Nothing is done unless the body of the run is not over after its execution time. Its children go with it as always.
   * Default false.
   */
  ifOverdue?: boolean
  /** Encoded. */
  error: string
  errorCode: string
}

/** Makes a failed or dead run live again, with the part of its history that its failure could not have influenced. */
export interface RequeueWrite {
  type: 'requeue'
  runId: string
  /** The token under which the history was read: nothing is done when the run has moved since. */
  token: number
  /** Positions that are retired. */
  retire: readonly number[]
  /** What is recorded of the children that the run has started before; null = there are none that matter. */
  record: NewRecord | null
  /** Execution time that it is given anew; undefined = from now as long as its deadline was after its start. */
  timeoutMs?: number | null | undefined
}

/** What a worker says of a step that was sent to it. */
export interface ResultWrite {
  type: 'result'
  result: StepResult
}

/** Makes a run due now, whatever it waits for. */
interface WakeWrite {
  type: 'wake'
  runId: string
}

export type Write =
  ChangeSet | StartWrite | SignalWrite | ResultWrite | CancelWrite | RequeueWrite | WakeWrite

/** What writes come to, by their kind. */
interface Answers {
  turn:
    /** `inboxSeq`: number of the newest inbox entry, so that a live turn knows whether something came. */
    | { type: 'committed'; inboxSeq: number; now: number }
    /** Somebody else holds the run: nothing of the change set was written. */
    | { type: 'lost' }
  /** `created` is false when the id was taken already: `run` is then the run that has it. */
  start: { type: 'started'; created: boolean; run: RunRow }
  /** `delivered` is false when nobody waited: the signal is kept. */
  signal: { type: 'signalled'; delivered: boolean }
  /** False: the run has ended, or there is none. True says nothing of whether a turn will accept the result. */
  result: { type: 'received'; done: boolean }
  /**
   * `cancelled`: at once. `unwinding`: once its compensations are over. `over`: it had ended. `unknown`: there is no
   * such run. `runs`: those that ended by it, the children included; left out where the answer was lost and read back.
   */
  cancel: {
    type: 'cancelled'
    outcome: 'cancelled' | 'unwinding' | 'over' | 'unknown'
    runs?: readonly RunRow[]
  }
  /** False: the run is not failed or dead any more, or there is none. */
  requeue: { type: 'requeued'; done: boolean }
  /** False: the run executes, is due, or has ended, or there is none. */
  wake: { type: 'woken'; done: boolean }
}

/** The database does not take the rows of a write, now and always; nothing of it was applied. */
interface Refused {
  type: 'refused'
  error: unknown
}

/** What a write comes to. Of others than these two, a refusal is an error to whoever made the call. */
export type AnswerTo<W extends Write> =
  Answers[W['type']] | (W extends ChangeSet | ResultWrite ? Refused : never)

/** What a store answers at once. */
export type Answer =
  | Answers[Write['type']]
  | Refused
  /**
   * Somebody outside the engine holds the run's row, such as a transaction of the application. The write waits for it
   * by itself, and later writes of the run behind it; the answer comes when it has been applied. It rejects when the
   * store is closed, and for writes of callers after a while.
   */
  | { type: 'held'; answer: Promise<Answer> }

/** What a flush tells those who wait for news. */
export interface FlushNews {
  /** Claim keys of runs that became due. */
  due: ReadonlySet<string>
  /** In how many ms the earliest of the runs that were given a later due time becomes due; null = none was. */
  dueIn: number | null
  /** Running runs that got inbox entries. */
  inbox: ReadonlySet<string>
  /**
   * Runs that were taken away from whoever executes them, or keeps them in memory while they wait, with the token that
   * the write gave them: a lease under a lower one is void.
   */
  revoked: ReadonlyMap<string, number>
  /** Runs that ended. */
  ended: ReadonlySet<string>
}

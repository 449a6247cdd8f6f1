import type { Dispatch, StepOutcome } from './dispatch.ts'
import type { RunStatus } from './run.ts'

/**
 * Kinds of operations a body can ask for; each takes one position of the history. Compensations, handoffs and what a
 * requeue says of earlier children are not called by the body: they have positions of their own, below zero.
 */
const OPERATION_KINDS = [
  'local_step',
  'step',
  'sleep',
  'signal',
  'send_signal',
  'child',
  'start_child',
  'all',
  'all_settled',
  'now',
  'attributes',
  'compensation',
  'handoff',
  'requeue',
] as const
export type OperationKind = (typeof OPERATION_KINDS)[number]

/**
 * How a recorded operation ended. `abandoned`: the body ended while the step was in flight.
 */
export type RecordStatus = 'completed' | 'failed' | 'abandoned'

/** The position of the compensation of the operation at `seq`. */
export function compensationSeq(seq: number): number {
  return -1 - seq
}

const FIRST_HANDOFF = -1_000_000_000

/** The position of a run's handoff, counted from 0. */
export function handoffSeq(handoff: number): number {
  return FIRST_HANDOFF - handoff
}

const FIRST_REQUEUE = -1_500_000_000

/** The position of what a requeue of a run records, counted from 0. */
export function requeueSeq(requeue: number): number {
  return FIRST_REQUEUE - requeue
}

/** What identifies an operation on replay. */
export interface OperationIdentity {
  /** Position in call order, from 0. */
  seq: number
  kind: OperationKind
  name: string
  /** Number of deliveries the body had received when it called the operation. */
  after: number
}

/** A recorded operation as a turn writes it. */
export interface NewRecord extends OperationIdentity {
  /** Order of delivery to the body, from 0; null = determined at the call (`now`) or never delivered (`abandoned`). */
  ordinal: number | null
  status: RecordStatus
  attempts: number
  /** Encoded. */
  output: string | null
  /** Encoded. */
  error: string | null
  /** How long the operation took, in ms; the store turns it into instants of its own clock. */
  durationMs: number
}

/** A recorded operation as it is stored. */
export interface HistoryRecord extends NewRecord {
  /** 0 is live; retired rows keep a higher one. */
  generation: number
  /** The lease token under which it was written. */
  token: number
  startedAt: number
  endedAt: number
}

/** An open operation as a turn opens it. Opening an open seq again replaces it. */
export interface NewWait extends OperationIdentity {
  /** Signal token waited for. */
  token: string | null
  /** Id of the child. */
  target: string | null
  /** How many children are to be started: of `all` and `allSettled`. */
  inputs: number | null
  /** Due this many ms after the write; at most one of `dueIn` and `dueAt` is set. */
  dueIn: number | null
  /** Due at this instant, given by the user. */
  dueAt: number | null
  /** Failed attempts so far (steps). */
  attempts: number
  /** Encoded error of the last failed attempt (steps). */
  error: string | null
  /** What was sent to workers for it; null = nothing: it is not a step, or it is executed with its run. */
  dispatch: Dispatch | null
}

/** An open operation as it is stored. */
export interface Wait extends Omit<NewWait, 'dueIn'> {
  openedAt: number
}

/** Something the outside sent to a run. */
export type InboxEntry = SignalEntry | ChildEntry | ResultEntry

export interface SignalEntry {
  kind: 'signal'
  /** Number within the run's inbox, from 1; entries are taken in this order. */
  no: number
  receivedAt: number
  /** The wait it was given to. */
  seq: number
  /** Minted by the sender; the same id is delivered once. */
  signalId: string
  token: string
  /** Encoded. */
  payload: string
}

/** A child ended, or could not be started. Its outcome is read from its own row. */
export interface ChildEntry {
  kind: 'child'
  no: number
  receivedAt: number
  seq: number
  index: number
  childId: string
  /**
   * `completed`, or `failed` (also of a cancelled or dead child): the outcome is in the child's row. `started`: the
   * answer to a start that asked for one. `taken`: another run has the id, and nothing was started.
   */
  event: 'completed' | 'failed' | 'started' | 'taken'
}

/** What a worker says of an attempt. Whether it still counts is decided by the turn that takes it. */
export interface ResultEntry {
  kind: 'result'
  no: number
  receivedAt: number
  seq: number
  generation: number
  attempt: number
  dispatchId: string
  outcome: StepOutcome
}

/** How a child ended; payloads encoded. */
export interface ChildOutcome {
  index: number
  runId: string
  status: RunStatus
  output: string | null
  error: string | null
}

/** Splits what was recorded: what replay meets, and the positions of what was undone before a requeue. */
export function liveAndUndone(records: readonly HistoryRecord[]): {
  history: HistoryRecord[]
  undone: number[]
} {
  const isUndoing = ({ generation, kind, status }: HistoryRecord) =>
    generation > 0 && kind === 'compensation' && status === 'completed'
  return {
    history: records.filter(({ generation }) => generation === 0),
    undone: records.filter(isUndoing).map(({ seq }) => compensationSeq(seq)),
  }
}

/**
 * Id of a step, or of its compensation, for whoever it calls: the same for each attempt, and another one once the step
 * has been undone, since what was given back is to be done anew.
 */
export function stepId(runId: string, seq: number, undone: readonly number[]): string {
  const position = seq < 0 ? compensationSeq(seq) : seq
  const times = undone.filter((other) => other === position).length
  return times === 0 ? `${runId}:${seq}` : `${runId}:${seq}~${times}`
}

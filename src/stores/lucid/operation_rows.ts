import type {
  ChildEntry,
  HistoryRecord,
  InboxEntry,
  OperationKind,
  RecordStatus,
  SignalEntry,
  Wait,
} from '../../core/history.ts'
import type { Dispatch, StepOutcome } from '../../core/dispatch.ts'
import type { OfRun } from '../../core/fold.ts'
import type { Value } from './dialect.ts'

/** Rows of `durable_history`, `durable_waits` and `durable_inbox`. */

export interface HistoryColumns {
  run_id: string
  generation: number
  seq: number
  kind: OperationKind
  name: string
  called_after: number
  ordinal: number | null
  status: RecordStatus
  attempts: number
  output: string | null
  error: string | null
  token: number
  duration_ms: number
  started_at: number
  ended_at: number
}

export const INSERT_RECORD = `insert into durable_history (run_id, generation, seq, kind, name, called_after, ordinal,
  status, attempts, output, error, token, duration_ms, started_at, ended_at)
  values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

export function recordValues(record: OfRun<HistoryRecord>): Value[] {
  return [
    record.runId,
    record.generation,
    record.seq,
    record.kind,
    record.name,
    record.after,
    record.ordinal,
    record.status,
    record.attempts,
    record.output,
    record.error,
    record.token,
    record.durationMs,
    record.startedAt,
    record.endedAt,
  ]
}

export function toRecord(columns: HistoryColumns): HistoryRecord {
  return {
    generation: columns.generation,
    seq: columns.seq,
    kind: columns.kind,
    name: columns.name,
    after: columns.called_after,
    ordinal: columns.ordinal,
    status: columns.status,
    attempts: columns.attempts,
    output: columns.output,
    error: columns.error,
    token: columns.token,
    durationMs: columns.duration_ms,
    startedAt: columns.started_at,
    endedAt: columns.ended_at,
  }
}

export interface WaitColumns {
  run_id: string
  seq: number
  kind: OperationKind
  name: string
  called_after: number
  token: string | null
  target: string | null
  inputs: number | null
  due_at: number | null
  attempts: number
  error: string | null
  dispatch_generation: number | null
  dispatch_attempt: number | null
  dispatch_id: string | null
  redispatches: number | null
  silence_ms: number | null
  opened_at: number
}

const WAIT_COLUMN_NAMES = [
  'run_id',
  'seq',
  'kind',
  'name',
  'called_after',
  'token',
  'target',
  'inputs',
  'due_at',
  'attempts',
  'error',
  'dispatch_generation',
  'dispatch_attempt',
  'dispatch_id',
  'redispatches',
  'silence_ms',
  'opened_at',
] as const satisfies readonly (keyof WaitColumns)[]

export const WAIT_COLUMNS = WAIT_COLUMN_NAMES.join(', ')

/** What a wait that is opened anew replaces: everything but its key. */
export const REPLACE_WAIT = [...WAIT_COLUMN_NAMES.slice(2), 'served']
  .map((column) => `${column} = excluded.${column}`)
  .join(', ')

/** Values: {@link waitValues}. */
export const UPSERT_WAIT = `insert into durable_waits (${WAIT_COLUMNS}, served)
  values (${WAIT_COLUMN_NAMES.map(() => '?').join(', ')}, 0)
  on conflict (run_id, seq) do update set ${REPLACE_WAIT}`

export function waitValues(wait: OfRun<Wait>): Value[] {
  return [
    wait.runId,
    wait.seq,
    wait.kind,
    wait.name,
    wait.after,
    wait.token,
    wait.target,
    wait.inputs,
    wait.dueAt,
    wait.attempts,
    wait.error,
    wait.dispatch?.generation ?? null,
    wait.dispatch?.attempt ?? null,
    wait.dispatch?.id ?? null,
    wait.dispatch?.redispatches ?? null,
    wait.dispatch?.silenceMs ?? null,
    wait.openedAt,
  ]
}

export function toWait(columns: WaitColumns): Wait {
  return {
    seq: columns.seq,
    kind: columns.kind,
    name: columns.name,
    after: columns.called_after,
    token: columns.token,
    target: columns.target,
    inputs: columns.inputs,
    dueAt: columns.due_at,
    attempts: columns.attempts,
    error: columns.error,
    dispatch: toDispatch(columns),
    openedAt: columns.opened_at,
  }
}

function toDispatch(columns: WaitColumns): Dispatch | null {
  if (columns.dispatch_id === null) return null
  return {
    generation: columns.dispatch_generation ?? 0,
    attempt: columns.dispatch_attempt ?? 0,
    id: columns.dispatch_id,
    redispatches: columns.redispatches ?? 0,
    silenceMs: columns.silence_ms,
  }
}

/** The columns of the other kinds of entry are null. */
export type InboxColumns = { run_id: string; no: number; seq: number; received_at: number } & (
  | { kind: 'signal'; signal_id: string; token: string; payload: string }
  | { kind: 'child'; child_id: string; child_index: number; child_event: ChildEntry['event'] }
  | {
      kind: 'result'
      payload: string
      generation: number
      attempt: number
      dispatch_id: string
      result_status: StepOutcome['status']
    }
)

export const INSERT_ENTRY = `insert into durable_inbox (run_id, no, kind, seq, received_at, signal_id, token, payload,
  child_id, child_index, child_event, generation, attempt, dispatch_id, result_status)
  values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

export function entryValues(entry: OfRun<InboxEntry>): Value[] {
  const common = [entry.runId, entry.no, entry.kind, entry.seq, entry.receivedAt]
  switch (entry.kind) {
    case 'signal':
      return [...common, entry.signalId, entry.token, entry.payload, ...NO_CHILD, ...NO_RESULT]
    case 'child':
      return [...common, null, null, null, entry.childId, entry.index, entry.event, ...NO_RESULT]
    case 'result': {
      const { outcome, generation, attempt, dispatchId } = entry
      const payload = outcome.status === 'completed' ? outcome.output : outcome.error
      const result = [generation, attempt, dispatchId, outcome.status]
      return [...common, null, null, payload, ...NO_CHILD, ...result]
    }
  }
}

const NO_CHILD = [null, null, null]
const NO_RESULT = [null, null, null, null]

export function toEntry(columns: InboxColumns): InboxEntry {
  switch (columns.kind) {
    case 'signal':
      return toSignal(columns)
    case 'child':
      return {
        kind: 'child',
        no: columns.no,
        receivedAt: columns.received_at,
        seq: columns.seq,
        index: columns.child_index,
        childId: columns.child_id,
        event: columns.child_event,
      }
    case 'result':
      return {
        kind: 'result',
        no: columns.no,
        receivedAt: columns.received_at,
        seq: columns.seq,
        generation: columns.generation,
        attempt: columns.attempt,
        dispatchId: columns.dispatch_id,
        outcome: toOutcome(columns),
      }
  }
}

function toOutcome({
  result_status: status,
  payload,
}: InboxColumns & { kind: 'result' }): StepOutcome {
  return status === 'completed' ? { status, output: payload } : { status, error: payload }
}

export function toSignal(columns: InboxColumns & { kind: 'signal' }): SignalEntry {
  return {
    kind: 'signal',
    no: columns.no,
    receivedAt: columns.received_at,
    seq: columns.seq,
    signalId: columns.signal_id,
    token: columns.token,
    payload: columns.payload,
  }
}

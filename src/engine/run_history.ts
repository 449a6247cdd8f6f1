import type { HistoryRecord, Wait } from '../core/history.ts'
import type { SerializedError } from '../core/serialized_error.ts'
import { readableError, readableValue } from './readable_payload.ts'

/** A recorded operation of a run as an application reads it. Instants are ms UTC of the database's clock. */
export interface RecordedOperation extends Omit<HistoryRecord, 'output' | 'error'> {
  /** What it came to; the stored text where that cannot be read. Left out where it has no output. */
  output?: any
  /** Why it failed. */
  error?: SerializedError | undefined
}

/** An open operation of a run as an application reads it. */
export interface OpenOperation extends Omit<Wait, 'error'> {
  /** Why the last attempt of a step failed. */
  error?: SerializedError | undefined
}

/** What a run has recorded, and what it waits for. */
export interface RunHistory {
  /** Of every generation, in order of generation and position. */
  records: RecordedOperation[]
  waits: OpenOperation[]
}

export function describeHistory(stored: { records: HistoryRecord[]; waits: Wait[] }): RunHistory {
  return { records: stored.records.map(describeRecord), waits: stored.waits.map(describeWait) }
}

function describeRecord({ output, error, ...record }: HistoryRecord): RecordedOperation {
  return {
    ...record,
    ...(output !== null && { output: readableValue(output) }),
    ...(error !== null && { error: readableError(error) }),
  }
}

function describeWait({ error, ...wait }: Wait): OpenOperation {
  return { ...wait, ...(error !== null && { error: readableError(error) }) }
}

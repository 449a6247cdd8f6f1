import type { StoredRun } from '../contracts/store.ts'
import { decode } from '../core/payload.ts'
import type { RunRow } from '../core/run.ts'
import { decodeError, type SerializedError } from '../core/serialized_error.ts'

/** A run as an application reads it. Instants are ms UTC of the database's clock. */
export interface WorkflowRun extends RunRow {
  input: any
  /** Undefined until the run has completed. */
  output?: any
  /** Why it failed, was cancelled, died, or is blocked. */
  error?: SerializedError | undefined
  tags: string[]
}

export function describeRun({ input, output, error, ...row }: StoredRun): WorkflowRun {
  return {
    ...row,
    input: decode(input),
    output: output === null ? undefined : decode(output),
    error: error === null ? undefined : decodeError(error),
  }
}

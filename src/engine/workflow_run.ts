import type { StoredRun } from '../contracts/store.ts'
import type { RunRow } from '../core/run.ts'
import type { StoredAttribute } from '../core/search_attributes.ts'
import type { SerializedError } from '../core/serialized_error.ts'
import { readableError, readableValue } from './readable_payload.ts'

/**
 * A run as an application reads it. Instants are ms UTC of the database's clock. What cannot be read of its payloads is
 * the stored text, so that the run can be looked at all the same.
 *
 * @template Output what its workflow returns, such as `OutputOf<typeof ImportLine>`
 */
export interface WorkflowRun<Output = any> extends RunRow {
  /** As it was given. */
  input: any
  /** Undefined until the run has completed. */
  output?: Output | undefined
  /** Why it failed, was cancelled, died, or is blocked. */
  error?: SerializedError | undefined
  tags: string[]
  /** Search attributes; dates as ISO texts. */
  attributes: Record<string, StoredAttribute>
}

export function describeRun({ input, output, error, ...row }: StoredRun): WorkflowRun {
  return {
    ...row,
    input: readableValue(input),
    output: output === null ? undefined : readableValue(output),
    error: error === null ? undefined : readableError(error),
  }
}

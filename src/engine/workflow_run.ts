import type { StoredRun } from '../contracts/store.ts'
import { decode } from '../core/payload.ts'
import type { RunRow } from '../core/run.ts'
import type { StoredAttribute } from '../core/search_attributes.ts'
import { decodeError, type SerializedError } from '../core/serialized_error.ts'
import { E_UNREADABLE_PAYLOAD } from '../errors.ts'

/**
 * A run as an application reads it. Instants are ms UTC of the database's clock.
 *
 * @template Output what its workflow returns, such as `OutputOf<typeof ImportLine>`
 */
export interface WorkflowRun<Output = any> extends RunRow {
  /** As it was given; the stored text where that cannot be read, so that the run can be looked at all the same. */
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
    input: readable(input),
    output: output === null ? undefined : decode(output),
    error: error === null ? undefined : decodeError(error),
  }
}

function readable(text: string): unknown {
  try {
    return decode(text)
  } catch (error) {
    if (error instanceof E_UNREADABLE_PAYLOAD) return text
    throw error
  }
}

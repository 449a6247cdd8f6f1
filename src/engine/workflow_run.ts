import type { StoredRun } from '../contracts/store.ts'
import type { RunSummary } from '../core/run.ts'
import type { StoredAttribute } from '../core/search_attributes.ts'
import type { SerializedError } from '../core/serialized_error.ts'
import { readableError, readableValue } from './readable_payload.ts'

/**
 * A run as an application reads it. Instants are ms UTC of the database's clock. What cannot be read of its payloads is
 * the stored text, so that the run can be looked at all the same.
 *
 * @template Output what its workflow returns, such as `OutputOf<typeof ImportLine>`
 */
export interface WorkflowRun<Output = any> extends RunSummary {
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

/** Without what a store gives beyond it, such as tokens and keys. */
export function summaryOf(run: RunSummary): RunSummary {
  const { id, workflow, version, namespace, origin, status, phase, priority } = run
  const { dueAt, owner, recoveryAttempts, parent, handles, routeChain, handoffs } = run
  const { deadlineAt, errorCode, createdAt, startedAt, updatedAt, endedAt } = run
  return {
    ...{ id, workflow, version, namespace, origin, status, phase, priority },
    ...{ dueAt, owner, recoveryAttempts, parent, handles, routeChain, handoffs },
    ...{ deadlineAt, errorCode, createdAt, startedAt, updatedAt, endedAt },
  }
}

export function describeRun(run: StoredRun): WorkflowRun {
  const { input, output, error, tags, attributes } = run
  return {
    ...summaryOf(run),
    tags,
    attributes,
    input: readableValue(input),
    output: output === null ? undefined : readableValue(output),
    error: error === null ? undefined : readableError(error),
  }
}

import type { StoredRun } from '../contracts/store.ts'
import type { RunRow, RunSummary } from '../core/run.ts'
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

export interface RunPage {
  /** Newest first. */
  runs: RunSummary[]
  /** Null on the last page. */
  next: string | null
}

/** A row without what only the engine needs, such as tokens and keys. */
export function summaryOf(row: RunRow): RunSummary {
  return {
    id: row.id,
    workflow: row.workflow,
    version: row.version,
    namespace: row.namespace,
    origin: row.origin,
    status: row.status,
    phase: row.phase,
    priority: row.priority,
    dueAt: row.dueAt,
    owner: row.owner,
    recoveryAttempts: row.recoveryAttempts,
    parent: row.parent,
    handles: row.handles,
    routeChain: row.routeChain,
    handoffs: row.handoffs,
    deadlineAt: row.deadlineAt,
    errorCode: row.errorCode,
    createdAt: row.createdAt,
    startedAt: row.startedAt,
    updatedAt: row.updatedAt,
    endedAt: row.endedAt,
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

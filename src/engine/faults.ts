import { E_FOREIGN_AWAIT, E_NON_DETERMINISM } from '../errors.ts'
import type { TurnFault } from '../replay/turn_state.ts'
import { type SerializedError, serializeError } from '../core/serialized_error.ts'

/** Operations of a body that are named. */
const NAMED_OPERATIONS = 10
/** Characters of a query that are shown. */
const SHOWN_QUERY = 100

/** What is recorded on a run whose turn cannot go on. */
export function blockedError(fault: TurnFault): SerializedError {
  switch (fault.code) {
    case 'foreign_await':
      return serializeError(new E_FOREIGN_AWAIT([foundBy(fault.by)]))
    case 'non_determinism': {
      const { seq, asked, recorded } = fault.mismatch
      return {
        ...serializeError(new E_NON_DETERMINISM([seq, asked ?? 'nothing', recorded])),
        details: { seq, asked, recorded },
      }
    }
  }
}

function foundBy(by: (TurnFault & { code: 'foreign_await' })['by']): string {
  if (by !== 'end' && 'query' in by)
    return `sent a query to the database by itself (${shortened(by.query)})`
  const did = by === 'end' ? 'ended' : `called ${by.call}`
  return `${did} after it had awaited something other than an operation of ctx`
}

function shortened(query: string): string {
  return query.length <= SHOWN_QUERY ? query : `${query.slice(0, SHOWN_QUERY)}...`
}

/** What is recorded on a run whose body never awaited one of its operations. */
export function notAwaitedError(operation: { seq: number; name: string }): SerializedError {
  return {
    name: 'OperationNotAwaited',
    message:
      `The body ended without awaiting operation ${operation.seq} ("${operation.name}"). ` +
      `Await it, or use ctx.startChild() for work that nobody waits for`,
    code: 'operation_not_awaited',
    details: { seq: operation.seq, name: operation.name },
    retryable: false,
  }
}

/** What is said of operations that a body called last, handed on, and did not wait for. */
export function notBegunMessage(
  { runId, workflow }: { runId: string; workflow: string },
  operations: readonly { kind: string; name: string }[]
): string {
  const named = operations.slice(0, NAMED_OPERATIONS).map(({ kind, name }) => `${kind} "${name}"`)
  const rest = operations.length - named.length
  const list = `${named.join(', ')}${rest > 0 ? ` and ${rest} more` : ''}`
  const [it, was] = operations.length === 1 ? ['it', 'it was'] : ['them', 'they were']
  return (
    `${workflow} ${runId} completed without ${list}: nobody waited for ${it}, so ${was} not begun. ` +
    'In a loop write: await Promise.all(list.map(...))'
  )
}

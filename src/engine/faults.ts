import { E_FOREIGN_AWAIT, E_NON_DETERMINISM } from '../errors.ts'
import type { TurnFault } from '../replay/turn_state.ts'
import { type SerializedError, serializeError } from '../core/serialized_error.ts'

/** What is recorded on a run whose turn cannot go on. */
export function blockedError(fault: TurnFault): SerializedError {
  switch (fault.code) {
    case 'foreign_await':
      return serializeError(
        new E_FOREIGN_AWAIT([
          fault.call === null
            ? 'The body ended after it'
            : `${fault.call} was called after the body`,
        ])
      )
    case 'non_determinism': {
      const { seq, asked, recorded } = fault.mismatch
      return {
        ...serializeError(new E_NON_DETERMINISM([seq, asked ?? 'nothing', recorded])),
        details: { seq, asked, recorded },
      }
    }
  }
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

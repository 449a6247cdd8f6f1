import { E_INTERNAL, E_UNREADABLE_PAYLOAD } from '../errors.ts'

/**
 * Whether it was our own code that failed on a write, and not the database: the same write would fail again. What a
 * driver throws of the language's classes, its store has given another class. Whatever nobody knows counts as the
 * database's: writes of turns are then kept.
 */
export function isOwnFault(error: unknown): boolean {
  return (
    error instanceof E_INTERNAL ||
    error instanceof E_UNREADABLE_PAYLOAD ||
    error instanceof TypeError ||
    error instanceof RangeError ||
    error instanceof ReferenceError
  )
}

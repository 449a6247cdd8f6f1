import type { RecordedCode } from '../errors.ts'
import type { RunRow } from './run.ts'

/** The code of a run that somebody has cancelled. On the row of one that unwinds it says what it will end as. */
export const CANCELLED = 'cancelled' satisfies RecordedCode

/** Whether a run undoes its steps since it was cancelled: it ends `cancelled`, and not as its failure does. */
export function isCancelled({ phase, errorCode }: Pick<RunRow, 'phase' | 'errorCode'>): boolean {
  return phase === 'unwinding' && errorCode === CANCELLED
}

/**
 * What the row of a run says that unwinds because it has failed with `code`. One that fails by what was cancelled, such
 * as a child, was not cancelled itself; the code of its failure is in its error.
 */
export function failedCode(code: string): string {
  return code === CANCELLED ? ('child_failed' satisfies RecordedCode) : code
}

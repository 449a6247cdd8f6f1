import type { AbortError } from '../errors.ts'
import { leaseLost } from './abort_reasons.ts'

/** The right of this process to execute runs, as far as it can tell without asking the database. */
export interface Lease {
  /** Instance id of the worker. */
  readonly owner: string
  /** False from the moment on when others may have taken the runs over. */
  readonly isHeld: boolean
  /** Resolves to true once the lease is certain again, to false when it is lost. */
  held(): Promise<boolean>
}

/**
 * Whether a run may go on here, once that is certain: the lease is held, and nobody has taken the run away meanwhile.
 * Where the lease is lost, `discard` is called.
 */
export async function mayGoOn(
  lease: Lease,
  run: { voided: AbortSignal; discard: (reason: AbortError) => void }
): Promise<boolean> {
  const isHeld = lease.isHeld || (await lease.held())
  if (!isHeld) run.discard(leaseLost())
  return isHeld && !run.voided.aborted
}

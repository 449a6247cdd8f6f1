/** The right of this process to execute runs, as far as it can tell without asking the database. */
export interface Lease {
  /** Instance id of the worker. */
  readonly owner: string
  /** False from the moment on when others may have taken the runs over. */
  readonly isHeld: boolean
  /** Resolves to true once the lease is certain again, to false when it is lost. */
  held(): Promise<boolean>
}

/** Whether a run may go on here, once that is certain: the lease is held, and nobody has taken the run away meanwhile. */
export async function mayGoOn(lease: Lease, voided: AbortSignal): Promise<boolean> {
  const isHeld = lease.isHeld || (await lease.held())
  return isHeld && !voided.aborted
}

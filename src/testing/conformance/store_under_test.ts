import type { Store } from '../../contracts/store.ts'

/** Damage done behind the store's back, so that promise P4 can be seen to notice it. */
export interface StoreCorruption {
  /** Deletes the row of an open wait. */
  dropWait(runId: string, seq: number): Promise<void>
  /** Deletes a run with all that belongs to it, its parent untold. */
  dropRun(runId: string): Promise<void>
  /** Deletes the run's inbox entries; its `inboxSeq` stays. */
  dropInbox(runId: string): Promise<void>
  /** Sets the due time to null. */
  forgetDue(runId: string): Promise<void>
  /** Sets the owner to an instance that no worker row has. */
  forgetOwner(runId: string): Promise<void>
  /** Sets the row's format. */
  setFormat(runId: string, format: number): Promise<void>
}

/** A store on an empty database of its own. */
export interface StoreUnderTest {
  /** Opened. */
  store: Store
  /** Opens another connection to the same database; `close` closes it too. */
  another(): Promise<Store>
  corrupt: StoreCorruption
  close(): Promise<void>
}

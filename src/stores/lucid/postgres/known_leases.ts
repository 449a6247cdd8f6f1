import type { Answer, TurnEnd, Write } from '../../../core/change_set.ts'
import type { RunRow } from '../../../core/run.ts'

/** Ends of a turn after which the run goes on under the same lease. */
const KEEPS_LEASE: ReadonlySet<TurnEnd['kind']> = new Set(['continue', 'unwind'])

/**
 * The runs that this process knows to hold. When the answer to a claim, or to a start under a lease of its own, is lost
 * with the connection, the database may hold runs for this process that it knows nothing of: nobody else would ever
 * take them, so the next claim hands them out.
 */
export class KnownLeases {
  /** Each with the run that started it; null = nobody's child. */
  #parents = new Map<string, string | null>()
  #isInDoubt = false

  /** An answer that gave runs to this process may have been lost. */
  get isInDoubt(): boolean {
    return this.#isInDoubt
  }

  /** False only for a run that is held here and is nobody's child. */
  mayHaveParent(runId: string): boolean {
    return this.#parents.get(runId) !== null
  }

  claimed(rows: readonly RunRow[]): void {
    for (const { id, parent } of rows) this.#parents.set(id, parent && parent.runId)
  }

  claimFailed(): void {
    this.#isInDoubt = true
  }

  sending(writes: readonly Write[]): void {
    for (const write of writes)
      if (write.type === 'start' && write.leaseTo !== null)
        this.#parents.set(write.run.id, write.run.parent && write.run.parent.runId)
  }

  answered(write: Write, answer: Answer): void {
    if (write.type === 'turn' && (answer.type === 'lost' || !KEEPS_LEASE.has(write.end.kind)))
      this.#parents.delete(write.runId)
    if (write.type !== 'start' || answer.type !== 'started' || answer.created) return
    // It may have found a run that this process holds already.
    if (answer.run.status !== 'running') this.#parents.delete(write.run.id)
  }

  /** @param isUnknown whether they may have been applied all the same */
  failed(writes: readonly Write[], { isUnknown }: { isUnknown: boolean }): void {
    for (const write of writes) {
      if (write.type !== 'start' || write.leaseTo === null) continue
      this.#parents.delete(write.run.id)
      this.#isInDoubt ||= isUnknown
    }
  }

  /** Of the runs that the database holds for this process, those that it does not know of; they are known from now on. */
  adopt(held: readonly RunRow[]): RunRow[] {
    this.#isInDoubt = false
    const unknown = held.filter(({ id }) => !this.#parents.has(id))
    this.claimed(unknown)
    return unknown
  }
}

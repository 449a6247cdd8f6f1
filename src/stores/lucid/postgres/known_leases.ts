import type { Answer, Write } from '../../../core/change_set.ts'
import type { RunRow } from '../../../core/run.ts'

/**
 * The runs that this process knows to hold. When the answer to a claim, or to a start under a lease of its own, is lost
 * with the connection, the database may hold runs for this process that it knows nothing of: nobody else would ever
 * take them, so the next claim hands them out.
 */
export class KnownLeases {
  #ids = new Set<string>()
  #isInDoubt = false

  /** An answer that gave runs to this process may have been lost. */
  get isInDoubt(): boolean {
    return this.#isInDoubt
  }

  claimed(rows: readonly RunRow[]): void {
    for (const { id } of rows) this.#ids.add(id)
  }

  claimFailed(): void {
    this.#isInDoubt = true
  }

  sending(writes: readonly Write[]): void {
    for (const write of writes)
      if (write.type === 'start' && write.leaseTo !== null) this.#ids.add(write.run.id)
  }

  answered(write: Write, answer: Answer): void {
    if (write.type === 'turn' && (answer.type === 'lost' || write.end.kind !== 'continue'))
      this.#ids.delete(write.runId)
    if (write.type !== 'start' || answer.type !== 'started' || answer.created) return
    // It may have found a run that this process holds already.
    if (answer.run.status !== 'running') this.#ids.delete(write.run.id)
  }

  /** @param isUnknown whether they may have been applied all the same */
  failed(writes: readonly Write[], { isUnknown }: { isUnknown: boolean }): void {
    for (const write of writes) {
      if (write.type !== 'start' || write.leaseTo === null) continue
      this.#ids.delete(write.run.id)
      this.#isInDoubt ||= isUnknown
    }
  }

  /** Of the runs that the database holds for this process, those that it does not know of; they are known from now on. */
  adopt(held: readonly RunRow[]): RunRow[] {
    this.#isInDoubt = false
    const unknown = held.filter(({ id }) => !this.#ids.has(id))
    this.claimed(unknown)
    return unknown
  }
}

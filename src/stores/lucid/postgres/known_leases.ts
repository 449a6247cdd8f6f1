import type { Answer, StartWrite, TurnEnd, Write } from '../../../core/change_set.ts'
import type { RunStanding } from '../../../contracts/store.ts'
import type { RunRow } from '../../../core/run.ts'

/** Ends of a turn after which the run goes on under the same lease. */
const KEEPS_LEASE: ReadonlySet<TurnEnd['kind']> = new Set(['continue', 'unwind'])
/** Of a run that is stored under a lease. */
const FIRST_TOKEN = 1

interface Held {
  owner: string | null
  token: number
  /** The run that started it; null = nobody's child. */
  parentId: string | null
  /** False: its start has been sent, and not been answered. */
  isAnswered: boolean
}

/**
 * The runs that this process knows to hold. When the answer to a claim, or to a start under a lease of its own, is lost
 * with the connection, the database may hold runs for this process that it knows nothing of: nobody else would ever
 * take them, so the next claim hands them out. A lease is known by its token: what is said of an earlier one concerns
 * no later one, and a run that was taken away and claimed again unheard is not taken for known.
 */
export class KnownLeases {
  #held = new Map<string, Held>()
  #isInDoubt = false

  /** An answer that gave runs to this process may have been lost. */
  get isInDoubt(): boolean {
    return this.#isInDoubt
  }

  /** False only for a run that is held here and is nobody's child. */
  mayHaveParent(runId: string): boolean {
    return this.#held.get(runId)?.parentId !== null
  }

  claimed(rows: readonly RunRow[]): void {
    for (const { id, owner, token, parent } of rows)
      this.#held.set(id, { owner, token, parentId: parent && parent.runId, isAnswered: true })
  }

  claimFailed(): void {
    this.#isInDoubt = true
  }

  sending(writes: readonly Write[]): void {
    for (const { run, leaseTo: owner } of leasedStarts(writes)) {
      const parentId = run.parent && run.parent.runId
      if (!this.#held.has(run.id))
        this.#held.set(run.id, { owner, token: FIRST_TOKEN, parentId, isAnswered: false })
    }
  }

  answered(write: Write, answer: Answer): void {
    if (write.type === 'turn' && endsLease(write.end, answer))
      this.#forget(write.runId, write.token)
    if (write.type === 'start' && write.leaseTo !== null) {
      const held = this.#held.get(write.run.id)
      if (held && answer.type === 'started' && answer.created) held.isAnswered = true
      else this.#forgetUnanswered(write.run.id)
    }
    if (answer.type === 'cancelled')
      for (const { id, token } of answer.runs ?? []) this.#forget(id, token)
  }

  /** @param isUnknown whether they may have been applied all the same */
  failed(writes: readonly Write[], { isUnknown }: { isUnknown: boolean }): void {
    for (const { run } of leasedStarts(writes)) {
      this.#forgetUnanswered(run.id)
      this.#isInDoubt ||= isUnknown
    }
  }

  /** The instance has lost its lease or is gone: whatever it held is held by others, or by nobody. */
  withdrawn(instance: string): void {
    for (const [runId, { owner }] of this.#held) if (owner === instance) this.#held.delete(runId)
  }

  /** Of the runs that the database holds for this process, those that it does not know of; they are known from now on. */
  adopt(held: readonly RunRow[]): RunRow[] {
    this.#isInDoubt = false
    const unknown = held.filter(({ id, token }) => this.#held.get(id)?.token !== token)
    this.claimed(unknown)
    return unknown
  }

  /**
   * What the instance holds is about to be read; the returned function forgets what is known now and is not among it:
   * others have taken it away, and nobody said so.
   */
  comparing(instance: string): (held: readonly RunStanding[]) => void {
    const known = [...this.#held].filter(
      ([, { owner, isAnswered }]) => owner === instance && isAnswered
    )
    const tokens = known.map(([runId, { token }]) => [runId, token] as const)
    return (held) => {
      const found = new Set(held.map(({ runId }) => runId))
      for (const [runId, token] of tokens) if (!found.has(runId)) this.#forget(runId, token)
    }
  }

  #forget(runId: string, token: number): void {
    const held = this.#held.get(runId)
    if (held && held.token <= token) this.#held.delete(runId)
  }

  /** Another start of the same id may be what this process holds already. */
  #forgetUnanswered(runId: string): void {
    if (this.#held.get(runId)?.isAnswered === false) this.#held.delete(runId)
  }
}

/** Not where the end is refused: the run goes on under its lease, which ends it another way. */
function endsLease({ kind }: TurnEnd, answer: Answer): boolean {
  return answer.type === 'lost' || (answer.type === 'committed' && !KEEPS_LEASE.has(kind))
}

function leasedStarts(writes: readonly Write[]): StartWrite[] {
  return writes.filter((write) => write.type === 'start').filter(({ leaseTo }) => leaseTo !== null)
}

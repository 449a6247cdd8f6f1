import type { HistoryRecord, OperationIdentity, Wait } from '../core/history.ts'

/** What the history says of a position. */
export type Recorded = { state: 'ended'; record: HistoryRecord } | { state: 'open'; wait: Wait }

/** A call that does not fit the history. */
export interface Mismatch {
  seq: number
  /** What the code asked for; null = nothing: the operation was not called. */
  asked: string | null
  recorded: string
}

/** The recorded operations of a run, by position and in order of delivery. */
export class RecordedHistory {
  #bySeq = new Map<number, Recorded>()
  #undelivered = new Map<number, HistoryRecord>()
  #inCallOrder: OperationIdentity[]
  #deliveries: HistoryRecord[]
  #delivered = 0
  #called = 0

  constructor(history: readonly HistoryRecord[], waits: readonly Wait[]) {
    for (const wait of waits) this.#bySeq.set(wait.seq, { state: 'open', wait })
    // Below zero are compensations and handoffs, which no body calls. What was never delivered counts as not recorded.
    for (const record of history) {
      if (record.seq < 0) continue
      if (record.ordinal !== null || record.kind === 'now')
        this.#bySeq.set(record.seq, { state: 'ended', record })
      else this.#undelivered.set(record.seq, record)
    }
    this.#inCallOrder = [...this.#bySeq.values()]
      .map((recorded) => (recorded.state === 'ended' ? recorded.record : recorded.wait))
      .sort((a, b) => a.seq - b.seq)
    this.#deliveries = history
      .filter((record) => record.ordinal !== null)
      .sort((a, b) => a.ordinal! - b.ordinal!)
  }

  /** Deliveries that the history has for the body. */
  get length(): number {
    return this.#deliveries.length
  }

  /** Whether nothing at all is recorded: the body has not been seen to run. */
  get isEmpty(): boolean {
    return this.#inCallOrder.length === 0
  }

  /** The first ordinal that no recorded delivery has. */
  get nextOrdinal(): number {
    return (this.#deliveries.at(-1)?.ordinal ?? -1) + 1
  }

  /** What is recorded of a position: also of one that came to an end and was not delivered. */
  recordAt(seq: number): HistoryRecord | undefined {
    const recorded = this.#bySeq.get(seq)
    return recorded?.state === 'ended' ? recorded.record : this.#undelivered.get(seq)
  }

  /** Whether every recorded delivery has been made. */
  get isSpent(): boolean {
    return this.#delivered === this.#deliveries.length
  }

  /** The record to deliver next. */
  get next(): HistoryRecord | undefined {
    return this.#deliveries[this.#delivered]
  }

  advance(): void {
    this.#delivered++
  }

  /** What is recorded for a call, or how the call contradicts it. Calls come in order of `seq`. */
  match(call: OperationIdentity): Recorded | { state: 'mismatch'; mismatch: Mismatch } | undefined {
    const recorded = this.#bySeq.get(call.seq)
    if (!recorded) return undefined
    this.#called++
    const identity = recorded.state === 'ended' ? recorded.record : recorded.wait
    const fits =
      identity.kind === call.kind && identity.name === call.name && identity.after === call.after
    if (fits) return recorded
    const mismatch = { seq: call.seq, asked: describe(call), recorded: describe(identity) }
    return { state: 'mismatch', mismatch }
  }

  /** A record whose delivery is due, and that was not called. */
  uncalled(record: HistoryRecord): Mismatch {
    return { seq: record.seq, asked: null, recorded: describe(record) }
  }

  /** A recorded operation that should have been called after this many deliveries, and was not. */
  missed(deliveries: number): Mismatch | undefined {
    const expected = this.#inCallOrder[this.#called]
    if (!expected || expected.after > deliveries) return undefined
    return { seq: expected.seq, asked: null, recorded: describe(expected) }
  }

  /** A recorded operation that the body ended without calling. */
  unreached(): Mismatch | undefined {
    const left = this.#inCallOrder[this.#called] ?? this.next
    return left && { seq: left.seq, asked: null, recorded: describe(left) }
  }
}

function describe({ kind, name, after }: OperationIdentity): string {
  return `${kind} "${name}" after ${after} deliveries`
}

import type { NewChild, SignalSend } from '../core/change_set.ts'
import type { ChildOutcome, SignalEntry } from '../core/history.ts'
import type { OpenCall } from './open_call.ts'
import type { Outcome, OutsideEvent, StepOrder, StepTask, WaitTerms } from './operation.ts'

/** What an operation starts with the write that records it. */
export interface Effects {
  children: readonly NewChild[]
  signals: readonly SignalSend[]
}

/** Something for an open operation, in the order it came here. */
export interface Arrival {
  seq: number
  /** Inbox number, to be counted as taken; null = it did not come through the inbox. */
  no: number | null
  signal: SignalEntry | null
  what: { event: OutsideEvent } | { outcome: Outcome; effects: Effects | null } | 'fetch'
  /** What was asked of the children's rows. */
  fetched?: readonly ChildOutcome[] | 'pending'
}

/** What the first arrival comes to. */
export type Resolved =
  | { kind: 'outcome'; outcome: Outcome; effects: Effects | null; attempts?: number }
  /** Nothing is to be delivered. */
  | { kind: 'none' }
  /** The children's rows have to be read first. */
  | { kind: 'pending' }
  | { kind: 'run'; task: StepTask }
  | { kind: 'wait'; wait: WaitTerms; order: StepOrder | null }
  | { kind: 'children'; children: readonly NewChild[] }

const NO_OPERATION = -1

/** What has come for open operations and has not been delivered. */
export class Arrivals {
  #queue: Arrival[] = []
  #fetch: (seq: number) => Promise<readonly ChildOutcome[]>
  #onFetched: () => void

  constructor(params: {
    fetch: (seq: number) => Promise<readonly ChildOutcome[]>
    onFetched: () => void
  }) {
    this.#fetch = params.fetch
    this.#onFetched = params.onFetched
  }

  get isEmpty(): boolean {
    return this.#queue.length === 0
  }

  /** Whether the first one can be looked at now. */
  get isReady(): boolean {
    const [first] = this.#queue
    return first !== undefined && first.fetched !== 'pending'
  }

  get first(): Arrival | undefined {
    return this.#queue[0]
  }

  shift(): void {
    this.#queue.shift()
  }

  /** An event from outside. */
  event(seq: number, event: OutsideEvent): void {
    const no = event.type === 'due' ? null : event.entry.no
    const signal = event.type === 'signal' ? event.entry : null
    this.#queue.push({ seq, no, signal, what: { event } })
  }

  /** There are no further entries up to this number: what is missing went to somebody else. */
  gone(upTo: number): void {
    this.#queue.push({ seq: NO_OPERATION, no: upTo, signal: null, what: 'fetch' })
  }

  outcome(seq: number, outcome: Outcome, effects: Effects | null = null): void {
    this.#queue.push({ seq, no: null, signal: null, what: { outcome, effects } })
  }

  /** The outcome is in the rows of the operation's children. */
  inChildren(seq: number): void {
    this.#queue.push({ seq, no: null, signal: null, what: 'fetch' })
  }

  resolve(arrival: Arrival, call: OpenCall): Resolved {
    if (arrival.fetched === 'pending') return { kind: 'pending' }
    if (arrival.fetched) return resolved(call.operation.outcomeOf(arrival.fetched))
    if (arrival.what === 'fetch') return this.#fetchFor(arrival)
    if ('outcome' in arrival.what) return { kind: 'outcome', ...arrival.what }
    const { event } = arrival.what
    // Its wait has been replaced since it was due.
    if (event.type === 'due' && !call.isDue) return { kind: 'none' }
    const taken = call.operation.take(event)
    switch (taken.kind) {
      case 'ignored':
        return { kind: 'none' }
      case 'outcome':
        return { ...taken, effects: null }
      case 'fetch':
        return this.#fetchFor(arrival)
      case 'children':
      case 'run':
      case 'wait':
        return taken
    }
  }

  #fetchFor(arrival: Arrival): Resolved {
    arrival.fetched = 'pending'
    void this.#fetch(arrival.seq).then((outcomes) => {
      arrival.fetched = outcomes
      this.#onFetched()
    })
    return { kind: 'pending' }
  }
}

function resolved(outcome: Outcome | null): Resolved {
  return outcome === null ? { kind: 'none' } : { kind: 'outcome', outcome, effects: null }
}

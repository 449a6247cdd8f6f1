import type { NewChild, SignalSend } from '../core/change_set.ts'
import type { NewRecord, NewWait, SignalEntry } from '../core/history.ts'
import { identityOf, type OpenCall } from './open_call.ts'
import type { StepOrder, StepTask, WaitTerms } from './operation.ts'

/** What a turn wants written, and what it wants done once that is durable. */
export interface Wants {
  records: NewRecord[]
  opened: NewWait[]
  closed: number[]
  /** Number of the newest inbox entry taken. */
  seenInbox: number
  returned: SignalEntry[]
  children: NewChild[]
  signals: SignalSend[]
  starts: StepTask[]
  /** Attempts for other processes. */
  orders: StepOrder[]
  /** Steps whose outcome nobody waits for any more. */
  abandoned: number[]
}

/** Gathers what a turn wants between two takes. */
export class WantsBuffer {
  #monotonic: () => number
  /** What was taken last: a turn that faults has taken no more than that. */
  #seenInbox: number
  #wants: Wants
  /** Waits that the coming write opens, by position. */
  #opened = new Map<number, NewWait>()
  /** What goes out after it, by position. */
  #orders = new Map<number, StepOrder>()

  constructor(params: { seenInbox: number; monotonic: () => number }) {
    this.#seenInbox = params.seenInbox
    this.#monotonic = params.monotonic
    this.#wants = noWants(params.seenInbox)
  }

  /** Waits that are opened by the coming write. */
  get opened(): readonly NewWait[] {
    return [...this.#opened.values()]
  }

  /** Everything gathered; the next take begins anew. */
  take(): Wants {
    const orders = [...this.#orders.values()]
    const wants = { ...this.#wants, orders, opened: [...this.#opened.values()] }
    this.#opened.clear()
    this.#orders.clear()
    this.#seenInbox = wants.seenInbox
    this.#wants = noWants(wants.seenInbox)
    return wants
  }

  /** Nothing but what has been taken before: what was gathered since is not to be written. */
  takeNothing(): Wants {
    return noWants(this.#seenInbox)
  }

  /** An operation has come to its end; `ordinal` null = the body does not get it. */
  record(
    call: OpenCall,
    ending: Pick<NewRecord, 'ordinal' | 'status'> & Partial<Pick<NewRecord, 'output' | 'error'>>
  ): void {
    const durationMs = Math.max(0, Math.round(this.#monotonic() - call.calledAt))
    const { attempts } = call
    const record = { output: null, error: null, ...ending }
    this.#wants.records.push({ ...identityOf(call), attempts, durationMs, ...record })
  }

  /** A value that was determined at its call. */
  recordValue(identity: Pick<NewRecord, 'seq' | 'kind' | 'name' | 'after'>, output: string): void {
    const record = { ordinal: null, status: 'completed' as const, attempts: 0, error: null }
    this.#wants.records.push({ ...identity, ...record, output, durationMs: 0 })
  }

  /** Opens the wait of an operation, or replaces what is known of it and what was to go out for it. */
  open(call: OpenCall, terms: WaitTerms, order: StepOrder | null = null): void {
    const wait: NewWait = { ...NO_TERMS, ...terms, ...identityOf(call) }
    const { dueAt, dispatch, attempts, error } = wait
    Object.assign(call, { hasWait: true, isDue: false, dueAt, dispatch, attempts, error })
    this.#opened.set(call.seq, wait)
    if (order) this.#orders.set(call.seq, order)
    else this.#orders.delete(call.seq)
  }

  /** Whether the coming write opens or replaces the wait of a position. */
  isOpening(seq: number): boolean {
    return this.#opened.has(seq)
  }

  close(call: OpenCall): void {
    if (!call.hasWait) return
    this.#opened.delete(call.seq)
    this.#orders.delete(call.seq)
    this.#wants.closed.push(call.seq)
  }

  start(task: StepTask): void {
    this.#wants.starts.push(task)
  }

  abandon(call: OpenCall): void {
    this.record(call, { ordinal: null, status: 'abandoned' })
    this.#wants.abandoned.push(call.seq)
  }

  startChildren(children: readonly NewChild[]): void {
    this.#wants.children.push(...children)
  }

  send(signals: readonly SignalSend[]): void {
    this.#wants.signals.push(...signals)
  }

  takeEntry(no: number): void {
    this.#wants.seenInbox = Math.max(this.#wants.seenInbox, no)
  }

  giveBack(signal: SignalEntry): void {
    this.#wants.returned.push(signal)
  }
}

const NO_TERMS: Required<WaitTerms> = {
  ...{ token: null, target: null, inputs: null, dueIn: null, dueAt: null },
  ...{ attempts: 0, error: null, dispatch: null },
}

function noWants(seenInbox: number): Wants {
  return {
    records: [],
    opened: [],
    closed: [],
    seenInbox,
    returned: [],
    children: [],
    signals: [],
    starts: [],
    orders: [],
    abandoned: [],
  }
}

import type { NewChild, SignalSend } from '../core/change_set.ts'
import type {
  ChildOutcome,
  HistoryRecord,
  NewRecord,
  NewWait,
  OperationIdentity,
  SignalEntry,
  Wait,
} from '../core/history.ts'
import {
  type Begin,
  type KnownChild,
  type Operation,
  OperationPromise,
  type Outcome,
  type OutsideEvent,
  silence,
  type StepTask,
} from './operation.ts'
import { type Mismatch, RecordedHistory } from './recorded.ts'

/** Runs two callbacks back to back, with nothing but microtasks after each, soon. */
export type Macrotask = (open: () => void, close: () => void) => void

/** Why a turn cannot go on: the history and the code do not fit, or the body awaited something foreign. */
export type TurnFault =
  { code: 'non_determinism'; mismatch: Mismatch } | { code: 'foreign_await'; call: string }

/** How a body ended. */
export type BodyOutcome =
  | { status: 'completed'; value: unknown }
  | { status: 'failed'; error: unknown }
  | { status: 'not_awaited'; seq: number; name: string }

export type TurnState =
  /** Something here is still at work: steps in flight, or a body that awaits what it should not. */
  | { kind: 'live'; stalled: boolean }
  /** Everything it awaits is outside. */
  | { kind: 'parked'; terms: ParkedTerms }
  | { kind: 'ended'; outcome: BodyOutcome }
  | { kind: 'faulted'; fault: TurnFault }

/** When a parked turn is to be woken. */
export interface ParkedTerms {
  /** The earliest known due time of its waits, by the store's clock. */
  dueAt: number | null
  /** The shortest duration of those that are still to be written. */
  dueIn: number | null
  /** Ends of children without which waking is not worth it; null = anything wakes. */
  needs: number | null
}

/** What a turn wants written, and what it wants done once that is durable. */
export interface TurnWants {
  records: NewRecord[]
  opened: NewWait[]
  closed: number[]
  seenInbox: number
  returned: SignalEntry[]
  children: NewChild[]
  signals: SignalSend[]
  starts: StepTask[]
  /** Steps whose outcome nobody waits for any more. */
  abandoned: number[]
  state: TurnState
}

export interface TurnParams {
  history: readonly HistoryRecord[]
  waits: readonly Wait[]
  /** Children of open waits, by position. */
  children: ReadonlyMap<number, readonly KnownChild[]>
  /** Number of the newest inbox entry that was taken by earlier turns. */
  seenInbox: number
  macrotask: Macrotask
  /** Monotonic milliseconds. */
  monotonic: () => number
  /** Outcomes of an operation's children, from their rows. */
  fetchOutcomes: (seq: number) => Promise<readonly ChildOutcome[]>
  /** Called when a window has closed and there is something to take. */
  onSettled: () => void
}

interface Called extends OperationIdentity {
  operation: Operation
  promise: OperationPromise<unknown>
  resolve: (value: unknown) => void
  reject: (reason: unknown) => void
  calledAt: number
  /** A row of its wait is in the store, or on its way there. */
  hasWait: boolean
  dueAt: number | null
  attempts: number
  /** `called`: not begun. `running`: its code is at work here. `waiting`: for the outside. */
  state: 'called' | 'running' | 'waiting' | 'over'
}

/** Something to be delivered, in the order it arrived here. */
interface Arrival {
  seq: number
  /** Inbox number, to be counted as taken. */
  no: number | null
  signal: SignalEntry | null
  what: { event: OutsideEvent } | { outcome: Outcome; effects?: Effects } | 'fetch'
  fetched?: readonly ChildOutcome[] | 'pending'
}

interface Effects {
  children: readonly NewChild[]
  signals: readonly SignalSend[]
}

/**
 * Runs a body against its history. Outcomes reach the body one at a time; behind each, every microtask runs
 * before the next (a window). The same order is kept on replay, so that races have the same winner. Nothing
 * is thrown into the body to suspend it: an operation that waits for the outside is a promise that stays open.
 */
export class Turn {
  #params: TurnParams
  #recorded: RecordedHistory
  #called = new Map<number, Called>()
  #fresh: Called[] = []
  #arrivals: Arrival[] = []
  #seq = 0
  #delivered = 0
  #draws = 0
  #running = 0
  #isOpen = false
  #isScheduled = false
  #begin: (() => void) | null = null
  #body: BodyOutcome | null = null
  #fault: TurnFault | null = null
  #isVoid = false
  #unlistened = new Set<Called>()
  #wants: TurnWants
  /** Newest inbox entry whose taking has been handed out to be written. */
  #seenInbox: number
  #now = 0

  constructor(params: TurnParams) {
    this.#params = params
    this.#recorded = new RecordedHistory(params.history, params.waits)
    this.#seenInbox = params.seenInbox
    this.#wants = this.#noWants(params.seenInbox)
  }

  /** Whether recorded deliveries are still being made. */
  get isReplaying(): boolean {
    return !this.#recorded.isSpent
  }

  /** The turn is over: operations never settle, and nothing is run. */
  get isOver(): boolean {
    return this.#isVoid || this.#fault !== null || this.#body !== null
  }

  /** Whether a window is open, or another delivery is about to be made. */
  get isBusy(): boolean {
    return this.#isScheduled || this.#isOpen
  }

  /** Starts the body in the first window. */
  start(body: () => unknown): void {
    this.#begin = () => {
      void new Promise((resolve) => resolve(body())).then(
        (value) => this.#finish({ status: 'completed', value }),
        (error) => this.#finish({ status: 'failed', error })
      )
    }
    this.#schedule()
  }

  /** Ends the turn without an outcome: its lease is gone, or its memory is wanted. */
  discard(): void {
    this.#isVoid = true
  }

  /** Ends the body with an error that escaped it: a rejection that nobody handled. */
  fail(error: unknown): void {
    if (this.isOver) return
    this.#body = { status: 'failed', error }
    this.#schedule()
  }

  /** Asks for an operation; the promise settles by a delivery. */
  call(operation: Operation): Promise<unknown> {
    const identity = this.#identify(operation)
    const { promise, resolve, reject } = OperationPromise.withResolvers<unknown>() as {
      promise: OperationPromise<unknown>
      resolve: (value: unknown) => void
      reject: (reason: unknown) => void
    }
    silence(promise)
    if (identity === null) return promise
    const calledAt = this.#params.monotonic()
    const base = { ...identity, operation, promise, resolve, reject, calledAt }
    const called: Called = { ...base, hasWait: false, dueAt: null, attempts: 0, state: 'called' }
    this.#unlistened.add(called)
    const recorded = this.#recorded.match(identity)
    if (recorded && !('state' in recorded)) {
      this.#fail({ code: 'non_determinism', mismatch: recorded })
      return promise
    }
    this.#called.set(called.seq, called)
    if (recorded?.state === 'ended') return promise
    if (recorded) {
      called.hasWait = true
      called.dueAt = recorded.wait.dueAt
      called.attempts = recorded.wait.attempts
    }
    this.#fresh.push(called)
    return promise
  }

  /** An operation whose value is determined at the call: recorded, not delivered. */
  determine(kind: 'now', value: () => string): string {
    const identity = this.#identify({ kind, name: kind })
    const recorded = identity && this.#recorded.match(identity)
    if (recorded && 'state' in recorded && recorded.state === 'ended')
      return recorded.record.output!
    if (recorded && !('state' in recorded))
      this.#fail({ code: 'non_determinism', mismatch: recorded })
    const output = value()
    if (identity === null || recorded) return output
    const record = { ...identity, ordinal: null, status: 'completed' as const, attempts: 0 }
    this.#wants.records.push({ ...record, output, error: null, durationMs: 0 })
    return output
  }

  /** Position and number of a draw, for values derived from them. */
  draw(): { seq: number; draw: number } {
    return { seq: this.#seq, draw: this.#draws++ }
  }

  /** Takes what came from outside, in order, and goes on; also without anything, after having been parked. */
  deliver(events: readonly Exclude<OutsideEvent, { type: 'due' }>[]): void {
    for (const event of events) {
      const signal = event.type === 'signal' ? event.entry : null
      const { seq, no } = event.entry
      this.#arrivals.push({ seq, no, signal, what: { event } })
    }
    this.#schedule()
  }

  /** The store's clock stands at `now`: waits that are due by it come to their end. */
  elapse(now: number): void {
    this.#now = Math.max(this.#now, now)
    this.#schedule()
  }

  /** A step's code has come to an outcome. */
  arrive(seq: number, outcome: Outcome, attempts: number): void {
    const called = this.#called.get(seq)
    if (!called || this.isOver) return
    called.attempts = attempts
    this.#arrivals.push({ seq, no: null, signal: null, what: { outcome } })
    this.#schedule()
  }

  /**
   * An attempt of a step failed and another will follow: at once (`retryIn` null), which is only noted with the
   * next write, or after `retryIn` ms without occupying the turn.
   */
  attemptFailed(
    seq: number,
    params: { attempts: number; error: string; retryIn: number | null }
  ): void {
    const called = this.#called.get(seq)
    if (!called || this.isOver) return
    called.attempts = params.attempts
    const terms = { attempts: params.attempts, error: params.error, dueIn: params.retryIn }
    this.#openWait(called, terms)
    if (params.retryIn === null) return
    this.#running--
    called.state = 'waiting'
    this.#schedule()
  }

  /** The writes last taken were applied when the store's clock stood at `now`. */
  committed(opened: readonly NewWait[], now: number): void {
    for (const wait of opened) {
      const called = this.#called.get(wait.seq)
      if (called && wait.dueIn !== null) called.dueAt = now + wait.dueIn
    }
  }

  /** Whether something outside this process may still have to be told to the turn. */
  get awaitsOutside(): boolean {
    for (const { state } of this.#called.values()) if (state === 'waiting') return true
    return false
  }

  /** Why the turn cannot go on; null = it can. */
  get fault(): TurnFault | null {
    return this.#fault
  }

  /** The nearest due time among open waits, by the store's clock; null = none. */
  get nextDueAt(): number | null {
    let next: number | null = null
    for (const { state, dueAt } of this.#called.values())
      if (state === 'waiting' && dueAt !== null) next = Math.min(next ?? dueAt, dueAt)
    return next
  }

  /** What is to be written and done now; null while deliveries are under way, or when there is nothing. */
  take(): TurnWants | null {
    if (this.#isVoid) return null
    if (this.#fault) {
      const state = { kind: 'faulted' as const, fault: this.#fault }
      return { ...this.#noWants(this.#seenInbox), state }
    }
    if (this.isBusy) return null
    const wants = { ...this.#wants, state: this.#state() }
    this.#seenInbox = wants.seenInbox
    this.#wants = this.#noWants(wants.seenInbox)
    return wants
  }

  #noWants(seenInbox: number): TurnWants {
    const lists = { records: [], opened: [], closed: [], returned: [], children: [], signals: [] }
    const state = { kind: 'live' as const, stalled: false }
    return { ...lists, starts: [], abandoned: [], seenInbox, state }
  }

  #identify(operation: Pick<Operation, 'kind' | 'name'>): OperationIdentity | null {
    if (this.isOver) return null
    if (!this.#isOpen) {
      this.#fail({ code: 'foreign_await', call: `${operation.kind} "${operation.name}"` })
      return null
    }
    this.#draws = 0
    const { kind, name } = operation
    return { seq: this.#seq++, kind, name, after: this.#delivered }
  }

  #finish(outcome: BodyOutcome): void {
    if (this.isOver) return
    if (!this.#isOpen) return this.#fail({ code: 'foreign_await', call: 'the end of the body' })
    this.#body = outcome
  }

  #fail(fault: TurnFault): void {
    if (this.isOver) return
    this.#fault = fault
    this.#params.onSettled()
  }

  #schedule(): void {
    if (this.#isScheduled || this.#isVoid || this.#fault) return
    this.#isScheduled = true
    this.#params.macrotask(
      () => this.#advance(),
      () => this.#settle()
    )
  }

  /** Opens a window: begins the body, or delivers one outcome. */
  #advance(): void {
    if (this.#isVoid || this.#fault || this.#body) return
    if (this.#begin) {
      this.#isOpen = true
      const begin = this.#begin
      this.#begin = null
      return begin()
    }
    const record = this.#recorded.next
    if (record) this.#replay(record)
    else this.#deliverNext()
  }

  #replay(record: HistoryRecord): void {
    const called = this.#called.get(record.seq)
    if (!called) {
      const recorded = `${record.kind} "${record.name}" after ${record.after} deliveries`
      const mismatch = { seq: record.seq, asked: null, recorded }
      return this.#fail({ code: 'non_determinism', mismatch })
    }
    this.#recorded.advance()
    const outcome: Outcome =
      record.status === 'failed'
        ? { status: 'failed', error: record.error! }
        : { status: 'completed', output: record.output! }
    this.#hand(called, outcome, record.attempts)
  }

  #deliverNext(): void {
    for (;;) {
      const arrival = this.#arrivals[0]
      if (!arrival) return
      const called = this.#called.get(arrival.seq)
      const outcome = called ? this.#resolve(arrival, called) : null
      if (outcome === 'pending') return
      this.#arrivals.shift()
      if (arrival.no !== null) this.#wants.seenInbox = arrival.no
      if (!called && arrival.signal) this.#wants.returned.push(arrival.signal)
      if (!called || outcome === null) continue
      return this.#record(called, outcome, arrival)
    }
  }

  /** The outcome an arrival brings; null = none. */
  #resolve(arrival: Arrival, called: Called): Outcome | null | 'pending' {
    if (arrival.fetched === 'pending') return 'pending'
    if (arrival.fetched) return called.operation.outcomeOf(arrival.fetched)
    if (arrival.what === 'fetch') return this.#fetch(arrival)
    if ('outcome' in arrival.what) return arrival.what.outcome
    const taken = called.operation.take(arrival.what.event)
    switch (taken.kind) {
      case 'ignored':
        return null
      case 'outcome':
        return taken.outcome
      case 'fetch':
        return this.#fetch(arrival)
      case 'children':
        this.#wants.children.push(...taken.children)
        return null
      case 'run':
        this.#run(called, taken.task)
        return null
    }
  }

  #fetch(arrival: Arrival): 'pending' {
    arrival.fetched = 'pending'
    const arrived = (outcomes: readonly ChildOutcome[]) => {
      arrival.fetched = outcomes
      this.#schedule()
    }
    void this.#params.fetchOutcomes(arrival.seq).then(arrived)
    return 'pending'
  }

  #record(called: Called, outcome: Outcome, arrival: Arrival): void {
    const { seq, kind, name, after, attempts } = called
    const durationMs = Math.max(0, Math.round(this.#params.monotonic() - called.calledAt))
    this.#wants.records.push({
      ...{ seq, kind, name, after, attempts, durationMs },
      ordinal: this.#delivered,
      status: outcome.status,
      output: outcome.status === 'completed' ? outcome.output : null,
      error: outcome.status === 'failed' ? outcome.error : null,
    })
    if (typeof arrival.what === 'object' && 'outcome' in arrival.what && arrival.what.effects) {
      this.#wants.children.push(...arrival.what.effects.children)
      this.#wants.signals.push(...arrival.what.effects.signals)
    }
    if (called.state === 'running') this.#running--
    this.#closeWait(called)
    this.#hand(called, outcome, attempts)
  }

  #hand(called: Called, outcome: Outcome, attempts: number): void {
    called.state = 'over'
    this.#called.delete(called.seq)
    this.#delivered++
    this.#isOpen = true
    if (called.promise.listened) this.#unlistened.delete(called)
    try {
      called.resolve(called.operation.receive(outcome, attempts))
    } catch (error) {
      called.reject(error)
    }
  }

  /** The window is closed: everything the body does by itself has been done. */
  #settle(): void {
    this.#isScheduled = false
    this.#isOpen = false
    if (this.#isVoid || this.#fault) return
    if (this.#body) this.#conclude(this.#body)
    const missed = this.#fault || this.#body ? undefined : this.#recorded.missed(this.#delivered)
    if (missed) return this.#fail({ code: 'non_determinism', mismatch: missed })
    if (this.#fault) return
    if (!this.#body && this.#recorded.next) return this.#schedule()
    for (const called of this.#fresh.splice(0)) this.#beginCall(called)
    if (!this.#body) this.#collectDue()
    const [first] = this.#arrivals
    if (!this.#body && first && first.fetched !== 'pending') return this.#schedule()
    this.#params.onSettled()
  }

  #collectDue(): void {
    const due = [...this.#called.values()]
      .filter(({ state, dueAt }) => state === 'waiting' && dueAt !== null && dueAt <= this.#now)
      .sort((a, b) => a.dueAt! - b.dueAt! || a.seq - b.seq)
    for (const called of due) {
      called.dueAt = null
      const what = { event: { type: 'due' as const } }
      this.#arrivals.push({ seq: called.seq, no: null, signal: null, what })
    }
  }

  #conclude(body: BodyOutcome): void {
    const mismatch = this.#recorded.unreached()
    if (mismatch) {
      this.#body = null
      return this.#fail({ code: 'non_determinism', mismatch })
    }
    if (body.status !== 'completed') return
    const forgotten = [...this.#unlistened].find(({ promise }) => !promise.listened)
    if (!forgotten) return
    this.#body = { status: 'not_awaited', seq: forgotten.seq, name: forgotten.name }
  }

  #beginCall(called: Called): void {
    const begin = this.#beginOf(called)
    switch (begin.kind) {
      case 'run':
        if (!this.#body) this.#run(called, begin.task)
        return
      case 'wait':
        called.state = 'waiting'
        this.#wants.children.push(...begin.children)
        if (begin.wait && !this.#body) this.#openWait(called, begin.wait)
        return
      case 'done': {
        const { output, children, signals } = begin
        const outcome: Outcome = { status: 'completed', output }
        const effects = { children, signals }
        if (this.#body) {
          this.#wants.children.push(...children)
          this.#wants.signals.push(...signals)
          return
        }
        const what = { outcome, effects }
        this.#arrivals.push({ seq: called.seq, no: null, signal: null, what })
        return
      }
      case 'fetch':
        called.state = 'waiting'
        this.#arrivals.push({ seq: called.seq, no: null, signal: null, what: 'fetch' })
        return
    }
  }

  #beginOf(called: Called): Begin {
    if (!called.hasWait) return called.operation.begin(called.seq)
    const { seq, kind, name, after, attempts, dueAt } = called
    const terms = { token: null, target: null, error: null, openedAt: 0 }
    const wait = { seq, kind, name, after, attempts, dueAt, ...terms }
    return called.operation.resume(wait, this.#params.children.get(seq) ?? [])
  }

  #run(called: Called, task: StepTask): void {
    called.state = 'running'
    this.#running++
    this.#wants.starts.push({ ...task, attempts: called.attempts })
  }

  #openWait(called: Called, terms: Partial<NewWait>): void {
    const { seq, kind, name, after } = called
    const nothing = {
      token: null,
      target: null,
      dueIn: null,
      dueAt: null,
      attempts: 0,
      error: null,
    }
    const wait: NewWait = { ...nothing, ...terms, seq, kind, name, after }
    called.hasWait = true
    called.dueAt = wait.dueAt
    this.#wants.opened = [...this.#wants.opened.filter((other) => other.seq !== seq), wait]
  }

  #closeWait(called: Called): void {
    if (!called.hasWait) return
    this.#wants.opened = this.#wants.opened.filter(({ seq }) => seq !== called.seq)
    this.#wants.closed.push(called.seq)
  }

  #state(): TurnState {
    if (this.#body) {
      this.#abandon()
      return { kind: 'ended', outcome: this.#body }
    }
    const isFetching = this.#arrivals.length > 0
    if (this.#running > 0 || isFetching) return { kind: 'live', stalled: false }
    const open = [...this.#called.values()]
    if (open.length === 0) return { kind: 'live', stalled: true }
    const pending = new Set(this.#wants.opened.map(({ seq }) => seq))
    let dueIn: number | null = null
    let dueAt: number | null = null
    for (const wait of this.#wants.opened) {
      if (wait.dueIn !== null) dueIn = Math.min(dueIn ?? wait.dueIn, wait.dueIn)
      if (wait.dueAt !== null) dueAt = Math.min(dueAt ?? wait.dueAt, wait.dueAt)
    }
    for (const called of open)
      if (!pending.has(called.seq) && called.dueAt !== null)
        dueAt = Math.min(dueAt ?? called.dueAt, called.dueAt)
    const needed = open.map(({ operation }) => operation.needs()).filter((n) => n !== null)
    const needs = needed.length > 0 ? Math.min(...needed) : null
    return { kind: 'parked', terms: { dueAt, dueIn, needs } }
  }

  /** Steps in flight when the body ends are recorded as such; nobody waits for their outcome. */
  #abandon(): void {
    for (const called of this.#called.values()) {
      if (called.state !== 'running') continue
      const { seq, kind, name, after, attempts } = called
      const durationMs = Math.max(0, Math.round(this.#params.monotonic() - called.calledAt))
      const identity = { seq, kind, name, after, attempts, durationMs }
      const ending = { ordinal: null, status: 'abandoned' as const, output: null, error: null }
      this.#wants.records.push({ ...identity, ...ending })
      this.#wants.abandoned.push(seq)
    }
  }
}

import type {
  ChildOutcome,
  HistoryRecord,
  NewWait,
  OperationIdentity,
  Wait,
} from '../core/history.ts'
import { EarlierChildren } from '../core/earlier_children.ts'
import { Arrivals } from './arrivals.ts'
import { type Compensable, Compensables } from './compensables.ts'
import { isAtWork, isElsewhere, isWaiting, type OpenCall, operationPromise } from './open_call.ts'
import {
  type Begin,
  type KnownChild,
  type Operation,
  type Outcome,
  type OutsideEvent,
  type StepTask,
} from './operation.ts'
import { type Mismatch, RecordedHistory } from './recorded.ts'
import { type BodyOutcome, parkedTerms, type TurnFault, type TurnState } from './turn_state.ts'
import { type Wants, WantsBuffer } from './wants.ts'

/** Runs two callbacks back to back, with nothing but microtasks after each, soon. */
export type Macrotask = (open: () => void, close: () => void) => void

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
  /** Only replays what is recorded, to get at the compensations. Default false. */
  isUnwinding?: boolean
  /** Each start of a step is written before it, so that it is known who was at work when the process died. Default false. */
  notesStarts?: boolean
}

export type TurnWants = Wants & { state: TurnState }

/**
 * Runs a body against its history. Outcomes reach the body one at a time; behind each, every microtask runs
 * before the next (a window). The same order is kept on replay, so that races have the same winner. Nothing
 * is thrown into the body to suspend it: an operation that waits for the outside is a promise that stays open.
 */
export class Turn {
  #params: TurnParams
  #recorded: RecordedHistory
  #arrivals: Arrivals
  #wants: WantsBuffer
  /** What the run had started before it was requeued. */
  readonly earlierChildren: EarlierChildren
  #open = new Map<number, OpenCall>()
  /** Called, and not begun yet. */
  #fresh: OpenCall[] = []
  /** Calls to which nobody had listened when last looked at. */
  #unlistened = new Set<OpenCall>()
  #unbegun: OpenCall[] = []
  #compensables = new Compensables()
  #seq = 0
  #delivered = 0
  #ordinal: number
  #draws = 0
  #running = 0
  #now = 0
  #isOpen = false
  /** The window was opened by something recorded. */
  #isRepeating = false
  #isScheduled = false
  #begin: (() => void) | null = null
  #body: BodyOutcome | null = null
  #fault: TurnFault | null = null
  #isDiscarded = false
  /** What follows from the end of the body is known: what comes later belongs to nobody here. */
  #isConcluded = false

  constructor(params: TurnParams) {
    const { history, waits, seenInbox, monotonic, fetchOutcomes } = params
    this.#params = params
    this.#recorded = new RecordedHistory(history, waits)
    this.earlierChildren = new EarlierChildren(history)
    this.#ordinal = this.#recorded.nextOrdinal
    this.#wants = new WantsBuffer({ seenInbox, monotonic })
    this.#arrivals = new Arrivals({ fetch: fetchOutcomes, onFetched: () => this.#schedule() })
  }

  /**
   * Whether the body does what it has done before: recorded deliveries are still being made, or it does what follows
   * the last of them, which it had done before that was written.
   */
  get isReplaying(): boolean {
    return !this.#recorded.isSpent || this.#isRepeating
  }

  /** The turn is over: operations never settle, and nothing is run. */
  get isOver(): boolean {
    return this.#isDiscarded || this.#fault !== null || this.#body !== null
  }

  /** Whether a window is open, or another delivery is about to be made. */
  get isBusy(): boolean {
    return this.#isScheduled || this.#isOpen
  }

  /** Whether something outside this process may still have to be told to the turn. */
  get awaitsOutside(): boolean {
    return this.#open.values().some(({ state }) => state === 'waiting')
  }

  /** Why the turn cannot go on; null = it can. */
  get fault(): TurnFault | null {
    return this.#fault
  }

  /** The nearest due time among open waits, by the store's clock; null = none. */
  get nextDueAt(): number | null {
    return parkedTerms([...this.#open.values()].filter(isWaiting), []).dueAt
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
    this.#isDiscarded = true
  }

  /** Ends the body with an error that escaped it: a rejection that nobody handled. */
  fail(error: unknown): void {
    if (this.isOver) return
    this.#body = { status: 'failed', error }
    this.#schedule()
  }

  /** The body asks the database by itself: it would do so again at each replay, and see something else. */
  queried(query: string): void {
    this.#fail({ code: 'foreign_await', by: { query } })
  }

  /** Asks for an operation; the promise settles by a delivery. */
  call(operation: Operation): Promise<unknown> {
    const identity = this.#identify(operation)
    const { promise, resolve, reject } = operationPromise()
    if (identity === null) return promise
    const recorded = this.#recorded.match(identity)
    const calledAt = this.#params.monotonic()
    const settle = { operation, promise, resolve, reject, calledAt }
    const call: OpenCall = {
      ...identity,
      ...settle,
      hasWait: false,
      target: null,
      inputs: null,
      dueAt: null,
      isDue: false,
      dispatch: null,
      error: null,
      attempts: 0,
      state: 'called',
    }
    this.#unlistened.add(call)
    this.#compensables.called(call)
    if (recorded?.state === 'mismatch') {
      this.#differ(recorded.mismatch)
      return promise
    }
    this.#open.set(call.seq, call)
    if (recorded?.state === 'ended') return promise
    if (recorded?.state === 'open') {
      const { target, inputs, dueAt, attempts, dispatch, error } = recorded.wait
      Object.assign(call, { hasWait: true, target, inputs, dueAt, attempts, dispatch, error })
    }
    this.#fresh.push(call)
    return promise
  }

  /** An operation whose value is determined at the call: recorded, not delivered. */
  determine(kind: 'now', value: () => string): string {
    const identity = this.#identify({ kind, name: kind })
    const recorded = identity && this.#recorded.match(identity)
    if (recorded?.state === 'ended') return recorded.record.output!
    if (recorded?.state === 'mismatch') this.#differ(recorded.mismatch)
    const output = value()
    if (identity && !recorded) this.#wants.recordValue(identity, output)
    return output
  }

  /** Position and number of a draw, for values derived from them. */
  draw(): { seq: number; draw: number } {
    return { seq: this.#seq, draw: this.#draws++ }
  }

  /**
   * Takes what came from outside, in order, and goes on; also without anything, after having been parked.
   *
   * @param upTo number of the newest entry the inbox ever had when it was read: those that are not among `events` are
   * in nobody's inbox any more, and count as taken
   */
  deliver(events: readonly Exclude<OutsideEvent, { type: 'due' }>[], upTo = 0): void {
    for (const event of events) this.#arrivals.event(event.entry.seq, event)
    if (upTo > (events.at(-1)?.entry.no ?? 0)) this.#arrivals.gone(upTo)
    this.#schedule()
  }

  /**
   * The store's clock stands at `now`: waits that are due by it come to their end.
   *
   * @param waits as they were stored then: heartbeats put off the time of what was sent to workers
   */
  elapse(now: number, waits: readonly Wait[] = []): void {
    for (const { seq, dueAt, dispatch } of waits) {
      const call = this.#open.get(seq)
      if (!dispatch || dueAt === null || !call || call.dueAt === null) continue
      if (call.dispatch?.id === dispatch.id) call.dueAt = Math.max(call.dueAt, dueAt)
    }
    this.#now = Math.max(this.#now, now)
    this.#schedule()
  }

  /** A step's code has come to an outcome. */
  arrive(seq: number, outcome: Outcome, attempts: number): void {
    const call = this.#open.get(seq)
    if (!call || this.isOver) return
    call.attempts = attempts
    this.#arrivals.outcome(seq, outcome)
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
    const call = this.#open.get(seq)
    if (!call || this.isOver) return
    const { attempts, error, retryIn } = params
    call.attempts = attempts
    this.#wants.open(call, { attempts, error, dueIn: retryIn })
    if (retryIn === null) return
    this.#running--
    call.state = 'waiting'
    this.#schedule()
  }

  /** The writes last taken were applied when the store's clock stood at `now`. */
  committed(opened: readonly NewWait[], now: number): void {
    for (const wait of opened) {
      const call = this.#open.get(wait.seq)
      const isReplaced = this.#wants.isOpening(wait.seq)
      if (call && !isReplaced && wait.dueIn !== null) call.dueAt = now + wait.dueIn
    }
  }

  /**
   * Positions of open operations that have a wait in the store and for which nobody takes what comes once the body has
   * ended: all but those of steps whose outcome decides whether they are undone.
   */
  get openWaits(): number[] {
    const calls = [...this.#open.values()].filter((call) => call.hasWait && !this.#isOwed(call))
    return calls.map(({ seq }) => seq)
  }

  /** Whether the body has done something that a failure would have to undo, or may still be doing it. */
  get hasCompensables(): boolean {
    return this.#compensables.areAny
  }

  /** What is to be undone; see `Compensables.list`. */
  compensables({ ofUnrecorded }: { ofUnrecorded: boolean }): Compensable[] {
    return this.#compensables.list({
      ofUnrecorded,
      recordAt: (seq) => this.#recorded.recordAt(seq),
    })
  }

  /** What the body called last, and ended without awaiting: it was not begun. */
  get unbegun(): OperationIdentity[] {
    return this.#unbegun
  }

  /** What is to be written and done now; null while deliveries are under way. */
  take(): TurnWants | null {
    if (this.#isDiscarded) return null
    if (this.#fault)
      return { ...this.#wants.takeNothing(), state: { kind: 'faulted', fault: this.#fault } }
    if (this.isBusy) return null
    const state = this.#state()
    return { ...this.#wants.take(), state }
  }

  #identify(operation: Pick<Operation, 'kind' | 'name'>): OperationIdentity | null {
    if (this.isOver) return null
    if (!this.#isOpen) {
      this.#fail({ code: 'foreign_await', by: { call: `${operation.kind} "${operation.name}"` } })
      return null
    }
    this.#draws = 0
    const { kind, name } = operation
    return { seq: this.#seq++, kind, name, after: this.#delivered }
  }

  #finish(outcome: BodyOutcome): void {
    if (this.isOver) return
    if (!this.#isOpen) return this.#fail({ code: 'foreign_await', by: 'end' })
    this.#body = outcome
  }

  #fail(fault: TurnFault): void {
    if (this.isOver) return
    this.#fault = fault
    this.#params.onSettled()
  }

  /** The code does not fit the history, so that an end of the body, too, is none. */
  #differ({ seq, asked, recorded }: Mismatch): void {
    this.#body = null
    this.#fail({ code: 'non_determinism', mismatch: { seq, asked, recorded } })
  }

  #schedule(): void {
    if (this.#isScheduled || this.#isDiscarded || this.#fault || this.#isConcluded) return
    this.#isScheduled = true
    this.#params.macrotask(
      () => this.#advance(),
      () => this.#settle()
    )
  }

  /** Opens a window: begins the body, or delivers one outcome. */
  #advance(): void {
    if (this.isOver) return
    if (this.#begin) {
      this.#isOpen = true
      this.#isRepeating = !this.#recorded.isEmpty
      const begin = this.#begin
      this.#begin = null
      return begin()
    }
    const record = this.#recorded.next
    if (record) this.#replay(record)
    else this.#deliverNext()
  }

  #replay(record: HistoryRecord): void {
    const call = this.#open.get(record.seq)
    if (!call) return this.#differ(this.#recorded.uncalled(record))
    this.#recorded.advance()
    this.#isRepeating = true
    const outcome: Outcome =
      record.status === 'failed'
        ? { status: 'failed', error: record.error! }
        : { status: 'completed', output: record.output! }
    call.attempts = record.attempts
    this.#hand(call, outcome)
  }

  #deliverNext(): void {
    for (;;) {
      const arrival = this.#arrivals.first
      if (!arrival) return
      const call = this.#open.get(arrival.seq)
      const resolved = call ? this.#arrivals.resolve(arrival, call) : null
      if (resolved?.kind === 'pending') return
      this.#arrivals.shift()
      if (arrival.no !== null) this.#wants.takeEntry(arrival.no)
      if (!call && arrival.signal) this.#wants.giveBack(arrival.signal)
      if (!call || resolved === null || resolved.kind === 'none') continue
      switch (resolved.kind) {
        case 'run':
          this.#run(call, resolved.task)
          break
        case 'children':
          this.#wants.startChildren(resolved.children)
          break
        case 'wait':
          this.#wants.open(call, resolved.wait, resolved.order)
          break
        case 'outcome':
          call.attempts = resolved.attempts ?? call.attempts
          if (resolved.effects) {
            this.#wants.startChildren(resolved.effects.children)
            this.#wants.send(resolved.effects.signals)
          }
          return this.#record(call, resolved.outcome)
      }
    }
  }

  #record(call: OpenCall, outcome: Outcome): void {
    this.#wants.record(call, { ordinal: this.#ordinal++, ...outcome })
    if (call.state === 'running') this.#running--
    this.#wants.close(call)
    this.#hand(call, outcome)
  }

  #hand(call: OpenCall, outcome: Outcome): void {
    call.state = 'over'
    this.#open.delete(call.seq)
    this.#compensables.delivered(call, outcome)
    this.#delivered++
    this.#isOpen = true
    if (call.promise.listened) this.#unlistened.delete(call)
    try {
      call.resolve(call.operation.receive(outcome, call.attempts))
    } catch (error) {
      call.reject(error)
    }
  }

  /** The window is closed: everything the body does by itself has been done. */
  #settle(): void {
    this.#isScheduled = false
    this.#isOpen = false
    this.#isRepeating = false
    if (this.#isDiscarded || this.#fault) return
    if (this.#body) this.#conclude(this.#body)
    else this.#goOn()
  }

  #goOn(): void {
    const missed = this.#recorded.missed(this.#delivered)
    if (missed) return this.#differ(missed)
    if (this.#recorded.next) return this.#schedule()
    if (this.#params.isUnwinding) return this.#params.onSettled()
    for (const call of this.#fresh.splice(0)) {
      this.#beginCall(call)
      if (this.#fault) return
    }
    this.#collectDue()
    if (this.#arrivals.isReady) this.#schedule()
    else this.#params.onSettled()
  }

  #collectDue(): void {
    const isDue = (call: OpenCall) =>
      isWaiting(call) && call.dueAt !== null && call.dueAt <= this.#now
    const due = [...this.#open.values()].filter(isDue)
    due.sort((a, b) => a.dueAt! - b.dueAt! || a.seq - b.seq)
    for (const call of due) {
      call.dueAt = null
      call.isDue = true
      this.#arrivals.event(call.seq, { type: 'due' })
    }
  }

  /** The body has ended. What it asked for in its last window and did not wait for goes out with its end. */
  #conclude(body: BodyOutcome): void {
    this.#isConcluded = true
    const mismatch = this.#recorded.unreached()
    if (mismatch) return this.#differ(mismatch)
    if (this.#params.isUnwinding) return this.#params.onSettled()
    const forgotten = [...this.#unlistened].find(({ promise }) => !promise.listened)
    if (body.status === 'completed' && forgotten)
      this.#body = { status: 'not_awaited', seq: forgotten.seq, name: forgotten.name }
    for (const call of this.#fresh.splice(0)) {
      this.#beginUnawaited(call)
      if (this.#fault) return
    }
    for (const call of this.#open.values())
      if (isAtWork(call) && !this.#isOwed(call)) this.#wants.abandon(call)
    this.#params.onSettled()
  }

  /** Whether the body has failed while a step is in flight elsewhere that may have to be undone. */
  #isOwed(call: OpenCall): boolean {
    const hasFailed = this.#body !== null && this.#body.status !== 'completed'
    return hasFailed && isElsewhere(call) && Boolean(call.operation.compensation)
  }

  #beginCall(call: OpenCall): void {
    const begin = this.#beginOf(call)
    switch (begin.kind) {
      case 'run':
        return this.#run(call, begin.task)
      case 'wait':
        call.state = 'waiting'
        this.#wants.startChildren(begin.children)
        if (begin.wait) this.#wants.open(call, begin.wait, begin.order)
        return
      case 'done': {
        const { output, children, signals } = begin
        return this.#arrivals.outcome(
          call.seq,
          { status: 'completed', output },
          { children, signals }
        )
      }
      case 'fetch':
        call.state = 'waiting'
        return this.#arrivals.inChildren(call.seq)
      case 'mismatch':
        return this.#differ({ ...begin, seq: call.seq })
    }
  }

  /** Begins what a body asked for that has ended: nobody takes an outcome of it. */
  #beginUnawaited(call: OpenCall): void {
    const begin = this.#beginOf(call)
    switch (begin.kind) {
      case 'wait':
        if (begin.children.length === 0) this.#notBegun(call)
        return this.#wants.startChildren(begin.children)
      case 'done':
        this.#wants.startChildren(begin.children)
        return this.#wants.send(begin.signals)
      case 'run':
        return this.#notBegun(call)
      case 'fetch':
        return
      case 'mismatch':
        return this.#differ({ ...begin, seq: call.seq })
    }
  }

  /** What was called before the last window, or has a wait, was begun by an earlier turn. */
  #notBegun(call: OpenCall): void {
    if (call.after === this.#delivered && !call.hasWait) this.#unbegun.push(call)
  }

  #beginOf(call: OpenCall): Begin {
    if (!call.hasWait) return call.operation.begin(call.seq)
    const known = this.#params.children.get(call.seq) ?? []
    return call.operation.resume(call, known)
  }

  #run(call: OpenCall, task: StepTask): void {
    call.state = 'running'
    this.#running++
    if (this.#params.notesStarts) this.#wants.open(call, { attempts: call.attempts })
    this.#wants.start({ ...task, attempts: call.attempts })
  }

  #state(): TurnState {
    if (this.#body) return { kind: 'ended', outcome: this.#body }
    if (this.#running > 0 || !this.#arrivals.isEmpty) return { kind: 'live', stalled: false }
    const calls = [...this.#open.values()]
    if (calls.length === 0) return { kind: 'live', stalled: true }
    return { kind: 'parked', terms: parkedTerms(calls, this.#wants.opened) }
  }
}

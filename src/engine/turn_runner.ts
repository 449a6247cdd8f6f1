import type { TurnEnd } from '../core/change_set.ts'
import type { HistoryRecord } from '../core/history.ts'
import { isSuspectKey } from '../core/name.ts'
import type { RunRow } from '../core/run.ts'
import { serializeError } from '../core/serialized_error.ts'
import type { LoadedRun } from '../contracts/store.ts'
import type { AbortError } from '../errors.ts'
import type { KnownChild } from '../replay/operation.ts'
import { Turn, type TurnWants } from '../replay/turn.ts'
import type { TurnFault } from '../replay/turn_state.ts'
import { bodyOf, type FoundBody } from './body.ts'
import { BodyEnd } from './body_end.ts'
import { ChildrenReader } from './children_reader.ts'
import type { ExecutionParams, Resident } from './execution.ts'
import { blockedError } from './faults.ts'
import { mayGoOn } from './lease.ts'
import { MACROTASK } from './macrotask.ts'
import { Outside } from './outside.ts'
import { startBody } from './run_context.ts'
import { RunWriter, type TurnEnding } from './run_writer.ts'
import { StallTimer } from './stall_timer.ts'
import { StepRunner } from './step_runner.ts'

/** What of a run is there once its body has begun here. */
interface Begun {
  turn: Turn
  outside: Outside
  end: BodyEnd
}

const CHILD_WAITS: ReadonlySet<string> = new Set(['child', 'all', 'all_settled'])

/**
 * Executes one run under a lease: runs its turn, writes what the turn wants, starts what may start once that is
 * durable, and feeds it what comes from outside. Kept after a suspension, it goes on where it stopped when the run
 * is claimed again by the same process.
 */
export class TurnRunner implements Resident {
  #params: ExecutionParams
  #writer: RunWriter
  #begun: Begun | null = null
  #steps: StepRunner
  #voided = new AbortController()
  #wake = Promise.withResolvers<void>()
  #isDriven = false
  #isDraining = false
  #mustRelease = false
  #stall: StallTimer
  #historyCharacters = 0

  constructor(row: RunRow, params: ExecutionParams) {
    this.#params = params
    this.#writer = new RunWriter(row, params)
    this.#stall = new StallTimer(this.#writer.facts, params)
    this.#steps = new StepRunner(row, {
      ...params,
      mayBegin: async () => (await this.#mayGoOn()) && !this.#isDraining,
      listener: {
        ended: (seq, outcome, attempts) => {
          if (this.#begun?.turn.isOver) this.#begun.end.lateOutcome(seq, outcome)
          else this.#begun?.turn.arrive(seq, outcome, attempts)
        },
        attemptFailed: (seq, failure) => this.#begun?.turn.attemptFailed(seq, failure),
        idle: () => this.#isDraining && this.#wake.resolve(),
      },
    })
  }

  get row(): RunRow {
    return this.#writer.row
  }

  get resident(): this | null {
    return this.#voided.signal.aborted ? null : this
  }

  get historyCharacters(): number {
    return this.#historyCharacters
  }

  get inboxLoaded(): number {
    return this.#begun?.outside.inboxLoaded ?? 0
  }

  quiet(): Promise<void> {
    return this.#steps.leave()
  }

  continues(row: RunRow): boolean {
    return row.token === this.row.token + 1 && !this.#voided.signal.aborted
  }

  /** Goes on under the lease of `row` until the run leaves this process. */
  async run(row: RunRow, loaded: LoadedRun): Promise<TurnEnding> {
    this.#writer.row = row
    this.#writer.clock.read(loaded.now)
    if (this.#begun) return this.#execute(this.#begun, loaded)
    const begun = (this.#begun = await this.#begin(loaded))
    if (row.token === 1) this.#params.events.emit('run.started', this.#writer.facts)
    const body = await this.#found(loaded)
    if (body === null)
      return this.#voided.signal.aborted ? 'lost' : this.#writer.end({}, { kind: 'release' })
    switch (body.kind) {
      case 'missing':
        return this.#writer.block({}, serializeError(body.error))
      case 'refused':
        return begun.end.refuseInput(body.error, { ...loaded, seenInbox: this.inboxLoaded })
      case 'ready':
        startBody(body.run, this.#params, {
          ...{ turn: begun.turn, writer: this.#writer, voided: this.#voided.signal },
          fail: (error) => this.#fail(begun.turn, error),
        })
        return this.#execute(begun, loaded)
    }
  }

  /** Null: the run leaves meanwhile. What makes its body and parses its input is the application's, and may never end. */
  async #found(loaded: LoadedRun): Promise<FoundBody | null> {
    const { registry } = this.#params
    this.#stall.arm()
    const left = this.#wake.promise.then(() => null)
    const found = await Promise.race([bodyOf(this.row, { input: loaded.input!, registry }), left])
    this.#stall.end()
    return found
  }

  /** From the history, up to the body. */
  async #begin(loaded: LoadedRun): Promise<Begun> {
    const { store, news, routing, options, log } = this.#params
    this.#historyCharacters = charactersOf(loaded.history)
    this.#steps.undone = loaded.undone
    const inboxLoaded = (loaded.inbox[0]?.no ?? this.row.inboxSeq + 1) - 1
    const turn = await this.#turnOf(loaded, inboxLoaded)
    const { signal } = this.#voided
    if (signal.aborted) turn.discard()
    else signal.addEventListener('abort', () => turn.discard())
    const outside = new Outside({
      ...{ runId: this.row.id, turn, store, news, log, inboxLoaded },
      clock: this.#writer.clock,
      idlePollMs: options.idlePollMs,
    })
    const end = new BodyEnd({
      ...{ turn, routing, writer: this.#writer, steps: this.#steps },
      maxPayloadBytes: options.maxPayloadBytes,
      log,
      input: loaded.input!,
    })
    return { turn, outside, end }
  }

  async #turnOf({ history, waits }: LoadedRun, seenInbox: number): Promise<Turn> {
    const { store, log } = this.#params
    const { signal } = this.#voided
    const reader = new ChildrenReader({ runId: this.row.id, store, log, signal })
    const children = new Map<number, readonly KnownChild[]>()
    for (const { seq, kind } of waits)
      if (CHILD_WAITS.has(kind)) children.set(seq, await reader.states(seq))
    return new Turn({
      ...{ history, waits, children, seenInbox },
      macrotask: MACROTASK,
      monotonic: () => performance.now(),
      fetchOutcomes: (seq) => reader.outcomes(seq),
      onSettled: () => this.#onSettled(),
      notesStarts: isSuspectKey(this.row.claimKey),
    })
  }

  async #execute(begun: Begun, loaded: LoadedRun): Promise<TurnEnding> {
    begun.outside.open(loaded, this.row.inboxSeq)
    this.#isDriven = true
    try {
      return await this.#drive(begun)
    } finally {
      this.#isDriven = false
      begun.outside.close()
      this.#stall.end()
    }
  }

  /** An error that nobody in the body handled. */
  #fail(turn: Turn, err: unknown): void {
    const { log } = this.#params
    const { id: runId } = this.row
    if (turn.isOver) log.error({ err, runId }, 'A promise of a body was rejected after its turn')
    else if (!this.#isDriven)
      log.warn({ err, runId }, 'A promise of a body was rejected while its run was suspended')
    turn.fail(err)
  }

  /** Lets steps in flight finish and starts no further one, then hands the run back. */
  drain(): void {
    this.#isDraining = true
    this.#wake.resolve()
  }

  /** Aborts steps in flight and starts no further one. Once they have returned, hands the run back. */
  abort(reason: AbortError): void {
    this.#isDraining = true
    this.#steps.drain(reason)
    this.#wake.resolve()
  }

  /** Hands the run back now; steps in flight are aborted and run again elsewhere. */
  release(reason: AbortError): void {
    this.#mustRelease = true
    this.abort(reason)
  }

  /** The lease is gone, or the memory is wanted: nothing of the turn happens any more. */
  discard(reason: AbortError): void {
    this.#steps.drain(reason)
    this.#voided.abort(reason)
    this.#wake.resolve()
  }

  #onSettled(): void {
    this.#wake.resolve()
    if (!this.#isDriven) this.#wakeIfOver()
  }

  /**
   * A turn that comes to its end while its run is suspended: its body has awaited something foreign, or a promise of it
   * was rejected. The run is woken, to say so.
   */
  #wakeIfOver(): void {
    const turn = this.#begun?.turn
    if (!turn?.isOver || this.#voided.signal.aborted) return
    const { commits, log } = this.#params
    if (turn.fault) log.warn({ runId: this.row.id }, blockedError(turn.fault).message)
    commits.write({ type: 'wake', runId: this.row.id }).catch((err) => {
      log.debug({ err }, 'A run whose body went on while it was suspended could not be woken')
    })
  }

  async #drive(begun: Begun): Promise<TurnEnding> {
    for (;;) {
      await this.#wake.promise
      this.#stall.end()
      this.#wake = Promise.withResolvers()
      if (this.#voided.signal.aborted) return 'lost'
      const wants = begun.turn.take()
      const ending = wants && (await this.#apply(begun, wants))
      if (ending) return ending
      const isIdle = this.#steps.isIdle && !begun.turn.isBusy
      if (this.#mustRelease || (this.#isDraining && isIdle)) return this.#handBack(begun)
    }
  }

  async #apply(begun: Begun, wants: TurnWants): Promise<TurnEnding | null> {
    const { state } = wants
    switch (state.kind) {
      case 'ended':
        return begun.end.conclude(wants, state.outcome)
      case 'faulted':
        return this.#block(wants, state.fault)
      case 'parked':
        return this.#park(begun, wants, { kind: 'suspend', ...state.terms })
      case 'live':
        return this.#goOn(begun, wants, state.stalled)
    }
  }

  async #park(
    begun: Begun,
    wants: TurnWants,
    end: TurnEnd & { kind: 'suspend' }
  ): Promise<TurnEnding | null> {
    const answer = await this.#writer.write(wants, end)
    if (answer.type !== 'committed') return begun.end.unwritten(wants, answer)
    this.#written(begun.turn, wants)
    this.#wakeIfOver()
    return this.#writer.ended(wants, end)
  }

  async #goOn(
    { turn, outside, end }: Begun,
    wants: TurnWants,
    stalled: boolean
  ): Promise<TurnEnding | null> {
    if (hasWrites(wants)) {
      const answer = await this.#writer.write(wants, { kind: 'continue' })
      if (answer.type !== 'committed') return end.unwritten(wants, answer)
      this.#written(turn, wants)
      outside.reached(answer.inboxSeq)
    }
    if (wants.starts.length > 0 && !this.#isDraining) {
      if (!(await this.#mayGoOn())) return 'lost'
      if (!this.#isDraining) for (const task of wants.starts) this.#steps.start(task)
    }
    outside.arm()
    if (stalled) this.#stall.arm()
    return null
  }

  /** What may go out now goes out. The store's clock stands where the write found it. */
  #written(turn: Turn, wants: TurnWants): void {
    this.#params.dispatcher?.send(this.row.id, wants.orders, this.#steps.undone)
    turn.committed(wants.opened, this.#writer.clock.lastReading)
    for (const { output, error } of wants.records)
      this.#historyCharacters += (output?.length ?? 0) + (error?.length ?? 0)
  }

  #block(wants: TurnWants, fault: TurnFault): Promise<TurnEnding> {
    const error = blockedError(fault)
    return this.#params.options.nonDeterminism === 'block'
      ? this.#writer.block(wants, error)
      : this.#writer.end(wants, this.#writer.failWith(error))
  }

  #mayGoOn(): Promise<boolean> {
    const discard = (reason: AbortError) => this.discard(reason)
    return mayGoOn(this.#params.lease, { voided: this.#voided.signal, discard })
  }

  /** Uncounted; what is recorded stays, and steps that were to start or are still at work run again elsewhere. */
  async #handBack(begun: Begun): Promise<TurnEnding> {
    const wants = begun.turn.take()
    if (wants && wants.state.kind !== 'live') return (await this.#apply(begun, wants)) ?? 'lost'
    const ending = await this.#writer.end(wants ?? {}, { kind: 'release' })
    if (wants && ending === 'released') this.#written(begun.turn, wants)
    return ending
  }
}

function hasWrites(wants: TurnWants): boolean {
  const { records, opened, closed, returned, children, signals } = wants
  return [records, opened, closed, returned, children, signals].some(({ length }) => length > 0)
}

function charactersOf(history: readonly HistoryRecord[]): number {
  return history.reduce(
    (sum, { output, error }) => sum + (output?.length ?? 0) + (error?.length ?? 0),
    0
  )
}

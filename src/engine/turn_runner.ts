import { clearTimeout, setTimeout } from 'node:timers'
import type { TurnEnd } from '../core/change_set.ts'
import type { HistoryRecord } from '../core/history.ts'
import { isSuspectKey } from '../core/name.ts'
import type { RunRow } from '../core/run.ts'
import { serializeError } from '../core/serialized_error.ts'
import type { LoadedRun } from '../contracts/store.ts'
import { AbortError } from '../errors.ts'
import type { KnownChild } from '../replay/operation.ts'
import { Turn, type TurnWants } from '../replay/turn.ts'
import type { TurnFault } from '../replay/turn_state.ts'
import { bodyOf } from './body.ts'
import { BodyEnd } from './body_end.ts'
import { ChildrenReader } from './children_reader.ts'
import type { ExecutionParams, Resident } from './execution.ts'
import { blockedError } from './faults.ts'
import { mayGoOn } from './lease.ts'
import { MACROTASK } from './macrotask.ts'
import { Outside } from './outside.ts'
import { contextOf } from './run_context.ts'
import { RunWriter, type TurnEnding } from './run_writer.ts'
import { runInScope } from './scope.ts'
import { StepRunner } from './step_runner.ts'

const CHILD_WAITS: ReadonlySet<string> = new Set(['child', 'all', 'all_settled'])

/**
 * Executes one run under a lease: runs its turn, writes what the turn wants, starts what may start once that is
 * durable, and feeds it what comes from outside. Kept after a suspension, it goes on where it stopped when the run
 * is claimed again by the same process.
 */
export class TurnRunner implements Resident {
  #params: ExecutionParams
  #writer: RunWriter
  #turn!: Turn
  #end!: BodyEnd
  /** Why the body cannot have its input. */
  #refusal: { error: unknown } | null = null
  #steps: StepRunner
  #voided = new AbortController()
  #wake = Promise.withResolvers<void>()
  #outside!: Outside
  #hasBegun = false
  #isDriven = false
  #isDraining = false
  #mustRelease = false
  #stallTimer: NodeJS.Timeout | undefined
  #historyCharacters = 0

  constructor(row: RunRow, params: ExecutionParams) {
    this.#params = params
    this.#writer = new RunWriter(row, params)
    this.#steps = new StepRunner({
      run: row,
      log: params.log,
      maxPayloadBytes: params.options.maxPayloadBytes,
      step: (name) => params.registry.step(name),
      mayBegin: async () => (await this.#holdsLease()) && !this.#isDraining,
      jitter: Math.random,
      listener: {
        ended: (seq, outcome, attempts) => {
          if (this.#turn.isOver) this.#end.lateOutcome(seq, outcome)
          else this.#turn.arrive(seq, outcome, attempts)
        },
        attemptFailed: (seq, failure) => this.#turn.attemptFailed(seq, failure),
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
    return this.#outside.inboxLoaded
  }

  /** Resolves when no function of a step of this run is at work any more. */
  quiet(): Promise<void> {
    return this.#steps.quiet()
  }

  continues(row: RunRow): boolean {
    return row.token === this.row.token + 1 && !this.#voided.signal.aborted
  }

  /** Begins from the history. Resolves to why the code of this build cannot, else to null. */
  async #begin(loaded: LoadedRun): Promise<Error | null> {
    const { store, news, events, registry, options, log } = this.#params
    const reader = new ChildrenReader({
      ...{ runId: this.row.id, store, log },
      signal: this.#voided.signal,
    })
    const children = new Map<number, readonly KnownChild[]>()
    for (const { seq, kind } of loaded.waits)
      if (CHILD_WAITS.has(kind)) children.set(seq, await reader.states(seq))
    this.#historyCharacters = charactersOf(loaded.history)
    this.#steps.undone = loaded.undone
    const inboxLoaded = (loaded.inbox[0]?.no ?? this.row.inboxSeq + 1) - 1
    this.#turn = new Turn({
      history: loaded.history,
      waits: loaded.waits,
      children,
      seenInbox: inboxLoaded,
      macrotask: MACROTASK,
      monotonic: () => performance.now(),
      fetchOutcomes: (seq) => reader.outcomes(seq),
      onSettled: () => this.#onSettled(),
      notesStarts: isSuspectKey(this.row.claimKey),
    })
    this.#outside = new Outside({
      ...{ runId: this.row.id, turn: this.#turn, store, news, inboxLoaded },
      clock: this.#writer.clock,
      log: this.#params.log,
      idlePollMs: options.idlePollMs,
    })
    this.#end = new BodyEnd({
      turn: this.#turn,
      writer: this.#writer,
      steps: this.#steps,
      routing: this.#params.routing,
      maxPayloadBytes: options.maxPayloadBytes,
      input: loaded.input!,
    })
    const { signal } = this.#voided
    if (signal.aborted) this.#turn.discard()
    else signal.addEventListener('abort', () => this.#turn.discard())
    if (this.row.token === 1) events.emit('run.started', this.#writer.facts)
    const ctx = contextOf(this.#params, {
      turn: this.#turn,
      run: this.row,
      abortSignal: this.#voided.signal,
      clock: this.#writer.clock,
      token: () => this.row.token,
    })
    const body = await bodyOf(this.row, { input: loaded.input!, registry })
    switch (body.kind) {
      case 'missing':
        return body.error
      case 'refused':
        this.#refusal = body
        return null
      case 'ready': {
        const fail = (err: unknown) => {
          if (this.#turn.isOver)
            log.error(
              { err, runId: this.row.id },
              'A promise of a body was rejected after its turn'
            )
          else this.#turn.fail(err)
        }
        const queried = (query: string) => this.#turn.queried(query)
        this.#turn.start(() =>
          runInScope({ kind: 'body', ctx, fail, queried }, () => body.run(ctx))
        )
        return null
      }
    }
  }

  /** Goes on under the lease of `row` until the run leaves this process. */
  async run(row: RunRow, loaded: LoadedRun): Promise<TurnEnding> {
    this.#writer.row = row
    this.#writer.clock.read(loaded.now)
    if (!this.#hasBegun) {
      this.#hasBegun = true
      const unable = await this.#begin(loaded)
      if (unable) return this.#writer.block({}, serializeError(unable))
    }
    if (this.#refusal)
      return this.#end.refuseInput(this.#refusal.error, { ...loaded, seenInbox: this.inboxLoaded })
    this.#outside.open(loaded, row.inboxSeq)
    this.#isDriven = true
    try {
      return await this.#drive()
    } finally {
      this.#isDriven = false
      this.#outside.close()
      this.#endStall()
    }
  }

  /** Lets steps in flight finish and starts no further one, then hands the run back. */
  drain(): void {
    this.#isDraining = true
    this.#wake.resolve()
  }

  /** Hands the run back now; steps in flight are aborted and run again elsewhere. */
  release(reason: AbortError): void {
    this.#isDraining = true
    this.#mustRelease = true
    this.#steps.drain(reason)
    this.#wake.resolve()
  }

  /** The lease is gone, or the memory is wanted: nothing of the turn happens any more. */
  discard(reason: AbortError): void {
    this.#steps.drain(reason)
    this.#voided.abort(reason)
    this.#wake.resolve()
  }

  #onSettled(): void {
    this.#wake.resolve()
    if (!this.#isDriven) this.#reportFault()
  }

  /** A body that goes on while its run is suspended has awaited something foreign: the run is woken, to say so. */
  #reportFault(): void {
    const { fault } = this.#turn
    if (!fault || this.#voided.signal.aborted) return
    const { commits, log } = this.#params
    log.warn({ runId: this.row.id }, blockedError(fault).message)
    commits.write({ type: 'wake', runId: this.row.id }).catch((err) => {
      log.debug({ err }, 'A run whose body went on while it was suspended could not be woken')
    })
  }

  async #drive(): Promise<TurnEnding> {
    for (;;) {
      await this.#wake.promise
      this.#endStall()
      this.#wake = Promise.withResolvers()
      if (this.#voided.signal.aborted) return 'lost'
      const wants = this.#turn.take()
      const ending = wants && (await this.#apply(wants))
      if (ending) return ending
      const isIdle = this.#steps.isIdle && !this.#turn.isBusy
      if (this.#mustRelease || (this.#isDraining && isIdle)) return this.#handBack()
    }
  }

  async #apply(wants: TurnWants): Promise<TurnEnding | null> {
    const { state } = wants
    switch (state.kind) {
      case 'ended':
        return this.#end.conclude(wants, state.outcome)
      case 'faulted':
        return this.#block(wants, state.fault)
      case 'parked':
        return this.#park(wants, state.terms)
      case 'live':
        return this.#goOn(wants, state.stalled)
    }
  }

  async #park(
    wants: TurnWants,
    terms: Omit<TurnEnd & { kind: 'suspend' }, 'kind'>
  ): Promise<TurnEnding | null> {
    const end = { kind: 'suspend' as const, ...terms }
    const answer = await this.#writer.write(wants, end)
    if (answer.type !== 'committed') return this.#end.unwritten(wants, answer)
    this.#written(wants)
    this.#reportFault()
    return this.#writer.ended(wants, end)
  }

  async #goOn(wants: TurnWants, stalled: boolean): Promise<TurnEnding | null> {
    if (hasWrites(wants)) {
      const answer = await this.#writer.write(wants, { kind: 'continue' })
      if (answer.type !== 'committed') return this.#end.unwritten(wants, answer)
      this.#written(wants)
      this.#outside.reached(answer.inboxSeq)
    }
    if (wants.starts.length > 0 && !this.#isDraining) {
      if (!(await this.#holdsLease())) return 'lost'
      if (!this.#isDraining) for (const task of wants.starts) this.#steps.start(task)
    }
    this.#outside.arm()
    this.#armStallTimer(stalled)
    return null
  }

  /** What may go out now goes out. The store's clock stands where the write found it. */
  #written(wants: TurnWants): void {
    this.#params.dispatcher?.send(this.row.id, wants.orders, this.#steps.undone)
    this.#turn.committed(wants.opened, this.#writer.clock.lastReading)
    for (const { output, error } of wants.records)
      this.#historyCharacters += (output?.length ?? 0) + (error?.length ?? 0)
  }

  #block(wants: TurnWants, fault: TurnFault): Promise<TurnEnding> {
    const error = blockedError(fault)
    return this.#params.options.nonDeterminism === 'block'
      ? this.#writer.block(wants, error)
      : this.#writer.end(wants, this.#writer.failWith(error))
  }

  /** False: the lease is gone, and with it the turn. */
  async #holdsLease(): Promise<boolean> {
    if (await mayGoOn(this.#params.lease, this.#voided.signal)) return true
    this.discard(new AbortError('lease_lost', 'Another worker has the run'))
    return false
  }

  /** Uncounted; what is recorded stays, and steps that were to start or are still at work run again elsewhere. */
  async #handBack(): Promise<TurnEnding> {
    const wants = this.#turn.take()
    if (wants && wants.state.kind !== 'live') return (await this.#apply(wants)) ?? 'lost'
    const ending = await this.#writer.end(wants ?? {}, { kind: 'release' })
    if (wants && ending === 'released') this.#written(wants)
    return ending
  }

  #armStallTimer(stalled: boolean): void {
    if (!stalled) return
    this.#stallTimer = setTimeout(() => {
      this.#params.stalled.add(this.row.id)
      this.#params.events.emit('run.stalled', this.#writer.facts)
    }, this.#params.options.stallMs)
    this.#stallTimer.unref()
  }

  #endStall(): void {
    clearTimeout(this.#stallTimer)
    this.#params.stalled.delete(this.row.id)
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

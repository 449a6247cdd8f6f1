import type { Answer, ChangeSet, TurnEnd } from '../core/change_set.ts'
import type { HistoryRecord } from '../core/history.ts'
import { decode, encode } from '../core/payload.ts'
import type { RunRow } from '../core/run.ts'
import { encodeError, type SerializedError, serializeError } from '../core/serialized_error.ts'
import type { LoadedRun, Store } from '../contracts/store.ts'
import type { KnownChild, OutsideEvent } from '../replay/operation.ts'
import { Turn, type TurnWants } from '../replay/turn.ts'
import type { BodyOutcome, TurnFault } from '../replay/turn_state.ts'
import { type ContextParams, RunContext } from '../replay/context.ts'
import type { ResolvedOptions } from '../options.ts'
import type { RunLogger } from '../types/step.ts'
import type { CommitQueue } from './commit_queue.ts'
import { E_UNKNOWN_WORKFLOW } from '../errors.ts'
import type { WorkflowBody } from './definitions.ts'
import { blockedError, notAwaitedError } from './faults.ts'
import type { RunEventEmitter } from './events.ts'
import type { Lease } from './lease.ts'
import type { RunNews } from './news.ts'
import type { Registry } from './registry.ts'
import { currentScope, runInScope } from './scope.ts'
import { parse, StepRunner } from './step_runner.ts'
import { StoreClock } from './store_clock.ts'

/** How a run left the hands of this process. */
export type TurnEnding = 'suspended' | 'ended' | 'blocked' | 'released' | 'lost'

export interface TurnRunnerParams {
  store: Store
  commits: CommitQueue
  news: RunNews
  events: RunEventEmitter
  registry: Registry
  lease: Lease
  log: RunLogger
  options: Pick<ResolvedOptions, 'maxPayloadBytes' | 'stallMs' | 'idlePollMs' | 'nonDeterminism'>
  inDevelopment: boolean
  naming: Pick<ContextParams, 'stepName' | 'workflow'>
}

// Taken when the module is loaded, so that a test's fake timers do not stop the engine.
const { setImmediate, setTimeout, clearTimeout } = globalThis
const READ_RETRY_MS = 500
const FIRST_BLOCK_RETRY_MS = 2_000
const LAST_BLOCK_RETRY_MS = 300_000

/**
 * Executes one run under a lease: runs its turn, writes what the turn wants, starts what may start once that is
 * durable, and feeds it what comes from outside. Kept after a suspension, it goes on where it stopped when the run
 * is claimed again by the same process.
 */
export class TurnRunner {
  #params: TurnRunnerParams
  #row: RunRow
  #turn!: Turn
  #steps: StepRunner
  #clock = new StoreClock()
  #voided = new AbortController()
  #wake = Promise.withResolvers<void>()
  #inboxLoaded = 0
  #isDriven = false
  #isRefreshing = false
  #mustRefresh = false
  #isDraining = false
  #mustRelease = false
  #dueTimer: NodeJS.Timeout | undefined
  #stallTimer: NodeJS.Timeout | undefined
  #historyCharacters = 0

  constructor(row: RunRow, params: TurnRunnerParams) {
    this.#row = row
    this.#params = params
    this.#steps = new StepRunner({
      runId: row.id,
      log: params.log,
      maxPayloadBytes: params.options.maxPayloadBytes,
      step: (name) => params.registry.step(name),
      mayBegin: async () => !this.#isDraining && this.#holdsLease(),
      jitter: Math.random,
      listener: {
        ended: (seq, outcome, attempts) => this.#turn.arrive(seq, outcome, attempts),
        attemptFailed: (seq, failure) => this.#turn.attemptFailed(seq, failure),
      },
    })
  }

  get row(): RunRow {
    return this.#row
  }

  /** Characters of recorded payloads that this keeps in memory. */
  get historyCharacters(): number {
    return this.#historyCharacters
  }

  /** Number of the newest inbox entry it has loaded. */
  get inboxLoaded(): number {
    return this.#inboxLoaded
  }

  /** Resolves when no function of a step of this run is at work any more. */
  quiet(): Promise<void> {
    return this.#steps.quiet()
  }

  /** Whether a claimed row continues what this keeps in memory. */
  continues(row: RunRow): boolean {
    return row.token === this.#row.token + 1 && !this.#voided.signal.aborted
  }

  /** Begins from the history; then call `run`. Resolves to why the code of this build cannot, else to null. */
  async begin(loaded: LoadedRun): Promise<Error | null> {
    const { store } = this.#params
    const children = new Map<number, readonly KnownChild[]>()
    for (const { seq, kind } of loaded.waits)
      if (kind === 'child' || kind === 'all' || kind === 'all_settled') {
        const read = () => store.childStates({ runId: this.#row.id, seq })
        children.set(seq, await this.#readOfChildren(read))
      }
    this.#historyCharacters = charactersOf(loaded.history)
    this.#inboxLoaded = (loaded.inbox[0]?.no ?? this.#row.inboxSeq + 1) - 1
    this.#clock.read(loaded.now)
    this.#turn = new Turn({
      history: loaded.history,
      waits: loaded.waits,
      children,
      seenInbox: this.#inboxLoaded,
      macrotask: (open, close) => {
        setImmediate(open)
        setImmediate(close)
      },
      monotonic: () => performance.now(),
      fetchOutcomes: (seq) =>
        this.#readOfChildren(() => store.childOutcomes({ runId: this.#row.id, seq })),
      onSettled: () => this.#onSettled(),
    })
    const { signal } = this.#voided
    if (signal.aborted) this.#turn.discard()
    else signal.addEventListener('abort', () => this.#turn.discard())
    if (this.#row.token === 1) this.#params.events.emit('run.started', this.#facts)
    const ctx = this.#context()
    const body = await this.#body(loaded.input!)
    if (body instanceof Error) return body
    const fail = (reason: unknown) => this.#turn.fail(reason)
    this.#turn.start(() => runInScope({ kind: 'body', ctx, fail }, () => body(ctx)))
    return null
  }

  /** Goes on under the lease of `row` until the run leaves this process. */
  async run(row: RunRow, loaded: LoadedRun): Promise<TurnEnding> {
    this.#row = row
    this.#clock.read(loaded.now)
    const unsubscribe = [
      this.#params.news.onInbox(row.id, () => this.#refresh()),
      this.#params.news.onAnything(() => this.#refresh()),
    ]
    this.#feed(loaded, row.inboxSeq)
    this.#isDriven = true
    try {
      return await this.#drive()
    } finally {
      this.#isDriven = false
      for (const stop of unsubscribe) stop()
      clearTimeout(this.#dueTimer)
      clearTimeout(this.#stallTimer)
    }
  }

  /** Lets steps in flight finish and starts no further one, then hands the run back. */
  drain(): void {
    this.#isDraining = true
    this.#wake.resolve()
  }

  /** Hands the run back now; steps in flight are aborted and run again elsewhere. */
  release(reason: Error): void {
    this.#isDraining = true
    this.#mustRelease = true
    this.#steps.drain(reason)
    this.#wake.resolve()
  }

  /** The lease is gone, or the memory is wanted: nothing of the turn happens any more. */
  discard(reason: Error): void {
    this.#steps.drain(reason)
    this.#voided.abort(reason)
    this.#wake.resolve()
  }

  get #facts() {
    const { id, workflow, version, namespace } = this.#row
    return { runId: id, workflow, version, namespace }
  }

  /** A body that goes on while its run is suspended has awaited something foreign: the next turn will say so. */
  #onSettled(): void {
    this.#wake.resolve()
    const { fault } = this.#turn
    if (!fault || this.#isDriven || this.#voided.signal.aborted) return
    this.#params.log.warn({ runId: this.#row.id }, blockedError(fault).message)
  }

  async #drive(): Promise<TurnEnding> {
    for (;;) {
      await this.#wake.promise
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
        return this.#conclude(wants, state.outcome)
      case 'faulted':
        return this.#block(wants, state.fault)
      case 'parked': {
        const answer = await this.#commit(wants, { kind: 'suspend', ...state.terms })
        return answer.type === 'committed' ? 'suspended' : this.#unwritten(answer)
      }
      case 'live':
        return this.#goOn(wants, state.stalled)
    }
  }

  async #goOn(wants: TurnWants, stalled: boolean): Promise<TurnEnding | null> {
    if (hasWrites(wants)) {
      const answer = await this.#commit(wants, { kind: 'continue' })
      if (answer.type !== 'committed') return this.#unwritten(answer)
      if (answer.inboxSeq > this.#inboxLoaded) this.#refresh()
    }
    if (wants.starts.length > 0 && !this.#isDraining) {
      if (!(await this.#holdsLease())) return 'lost'
      for (const task of wants.starts) this.#steps.start(task)
    }
    this.#armDueTimer()
    this.#armStallTimer(stalled)
    return null
  }

  async #conclude(wants: TurnWants, outcome: BodyOutcome): Promise<TurnEnding> {
    for (const seq of wants.abandoned) this.#steps.abandon(seq)
    const end = this.#endOf(outcome)
    const answer = await this.#commit(wants, end)
    if (answer.type !== 'committed') return this.#unwritten(answer)
    this.#turn.discard()
    if (end.kind === 'fail') this.#params.events.emit('run.failed', this.#failure(end.error))
    else this.#params.events.emit('run.completed', this.#facts)
    return 'ended'
  }

  #endOf(outcome: BodyOutcome): TurnEnd & { kind: 'complete' | 'fail' } {
    if (outcome.status === 'failed') return this.#failWith(serializeError(outcome.error))
    if (outcome.status === 'not_awaited') return this.#failWith(notAwaitedError(outcome))
    try {
      const { maxPayloadBytes } = this.#params.options
      const output = encode(outcome.value, { label: 'output', maxBytes: maxPayloadBytes })
      return { kind: 'complete', output }
    } catch (error) {
      return this.#failWith(serializeError(error))
    }
  }

  #failWith(error: SerializedError) {
    const text = encodeError(error, { maxBytes: this.#params.options.maxPayloadBytes })
    return { kind: 'fail' as const, error: text, errorCode: error.code ?? error.name }
  }

  /** The code of this build cannot execute the run: it is offered again later. */
  async block(error: unknown): Promise<TurnEnding> {
    return this.#blockWith(null, serializeError(error))
  }

  async #block(wants: TurnWants, fault: TurnFault): Promise<TurnEnding> {
    const error = blockedError(fault)
    if (this.#params.options.nonDeterminism === 'block') return this.#blockWith(wants, error)
    const failure = this.#failWith(error)
    const answer = await this.#commit(wants, failure)
    if (answer.type !== 'committed') return this.#unwritten(answer)
    this.discard(new Error('The run has failed'))
    this.#params.events.emit('run.failed', this.#failure(failure.error))
    return 'ended'
  }

  async #blockWith(wants: TurnWants | null, error: SerializedError): Promise<TurnEnding> {
    const failure = this.#failWith(error)
    const age = this.#clock.estimate() - (this.#row.startedAt ?? this.#row.createdAt)
    const lastMs = this.#params.inDevelopment ? FIRST_BLOCK_RETRY_MS : LAST_BLOCK_RETRY_MS
    const retryIn = Math.min(Math.max(age, FIRST_BLOCK_RETRY_MS), lastMs)
    const answer = await this.#commit(wants, { ...failure, kind: 'block', retryIn })
    if (answer.type !== 'committed') return this.#unwritten(answer)
    this.discard(new Error('The run is blocked'))
    this.#params.events.emit('run.blocked', this.#failure(failure.error))
    return 'blocked'
  }

  #failure(error: string) {
    return { ...this.#facts, error: decode(error) as SerializedError }
  }

  /** Uncounted; what is recorded stays, and steps that were to start or are still at work run again elsewhere. */
  async #handBack(): Promise<TurnEnding> {
    const wants = this.#turn.take()
    if (wants && wants.state.kind !== 'live') return (await this.#apply(wants)) ?? 'lost'
    const answer = await this.#commit(wants, { kind: 'release' })
    this.discard(new Error('The worker is shutting down'))
    return answer.type === 'committed' ? 'released' : 'lost'
  }

  /** The database refused the write itself, or the lease is gone. */
  async #unwritten(answer: Answer): Promise<TurnEnding> {
    if (answer.type !== 'refused') return this.#lose()
    const end = this.#failWith(serializeError(answer.error))
    const failed = await this.#commit(null, end)
    if (failed.type !== 'committed') return this.#lose()
    this.discard(new Error('The database refused what the run wrote'))
    this.#params.events.emit('run.failed', this.#failure(end.error))
    return 'ended'
  }

  /** False: the lease is gone, and with it the turn. */
  async #holdsLease(): Promise<boolean> {
    const { lease } = this.#params
    if (lease.isHeld || (await lease.held())) return true
    this.#lose()
    return false
  }

  #lose(): TurnEnding {
    this.discard(new Error('Another worker has the run'))
    return 'lost'
  }

  async #commit(wants: TurnWants | null, end: TurnEnd): Promise<Answer> {
    const changes: ChangeSet = {
      type: 'turn',
      runId: this.#row.id,
      token: this.#row.token,
      records: wants?.records ?? [],
      opened: wants?.opened ?? [],
      closed: wants?.closed ?? [],
      seenInbox: wants?.seenInbox ?? 0,
      returned: wants?.returned ?? [],
      children: wants?.children ?? [],
      signals: wants?.signals ?? [],
      end,
    }
    const answer = await this.#params.commits.write(changes)
    if (answer.type === 'committed') {
      this.#clock.read(answer.now)
      this.#turn.committed(changes.opened, answer.now)
    }
    for (const { output, error } of changes.records)
      this.#historyCharacters += (output?.length ?? 0) + (error?.length ?? 0)
    return answer
  }

  /**
   * Two looks may overlap, and each entry is taken once. `upTo` is the newest entry before the look: what is missing
   * up to it was given back to others, and would else make the run due at every suspension.
   */
  #feed({ inbox, now }: LoadedRun, upTo = 0): void {
    const unread = inbox.filter(({ no }) => no > this.#inboxLoaded)
    const events = unread.map((entry): Exclude<OutsideEvent, { type: 'due' }> =>
      entry.kind === 'signal' ? { type: 'signal', entry } : { type: 'child', entry }
    )
    this.#inboxLoaded = Math.max(this.#inboxLoaded, unread.at(-1)?.no ?? 0, upTo)
    this.#turn.deliver(events, upTo)
    this.#turn.elapse(now)
  }

  /** Looks for what has come from outside; one look at a time, and another if it was asked for meanwhile. */
  #refresh(): void {
    this.#mustRefresh = true
    if (this.#isRefreshing || !this.#turn.awaitsOutside) return
    this.#isRefreshing = true
    void this.#refreshAll().finally(() => (this.#isRefreshing = false))
  }

  async #refreshAll(): Promise<void> {
    while (this.#mustRefresh && this.#isDriven && !this.#turn.isOver) {
      this.#mustRefresh = false
      const request = { runId: this.#row.id, resident: true, inboxAfter: this.#inboxLoaded }
      const [loaded] = await this.#params.store.load([request]).catch(() => [])
      if (loaded) this.#feed(loaded)
    }
    this.#armDueTimer()
  }

  /** At the next due time of a wait, and now and then as a net, looks for what has come. */
  #armDueTimer(): void {
    clearTimeout(this.#dueTimer)
    if (!this.#turn.awaitsOutside) return
    const { nextDueAt } = this.#turn
    const untilDue = nextDueAt === null ? Infinity : nextDueAt - this.#clock.estimate()
    const ms = Math.max(1, Math.min(untilDue, this.#params.options.idlePollMs))
    this.#dueTimer = setTimeout(() => this.#refresh(), ms)
    this.#dueTimer.unref()
  }

  #armStallTimer(stalled: boolean): void {
    clearTimeout(this.#stallTimer)
    if (!stalled) return
    const stall = () => this.#params.events.emit('run.stalled', this.#facts)
    this.#stallTimer = setTimeout(stall, this.#params.options.stallMs)
    this.#stallTimer.unref()
  }

  /** Tried again for as long as the lease is held; then nothing. */
  async #readOfChildren<T>(read: () => Promise<T[]>): Promise<T[]> {
    while (!this.#voided.signal.aborted) {
      try {
        return await read()
      } catch (error) {
        const line = 'What became of children could not be read; trying again'
        this.#params.log.warn({ err: error }, line)
        await new Promise((resolve) => setTimeout(resolve, READ_RETRY_MS))
      }
    }
    return []
  }

  #context(): RunContext {
    const { options, log, naming } = this.#params
    return new RunContext({
      ...naming,
      turn: this.#turn,
      run: this.#row,
      maxPayloadBytes: options.maxPayloadBytes,
      abortSignal: this.#voided.signal,
      log,
      now: () => this.#clock.steady(),
      callingStep: () => {
        const scope = currentScope()
        return scope?.kind === 'step' ? scope.name : null
      },
    })
  }

  /**
   * The body with its parsed input, or why there is none: an unknown workflow, a file or a container that fails. An
   * input that cannot be read or does not fit is a failure of the run instead.
   */
  async #body(input: string): Promise<Error | ((ctx: RunContext) => unknown)> {
    const { workflow, version } = this.#row
    const definition = this.#params.registry.workflow(workflow, version)
    if (!definition)
      return new E_UNKNOWN_WORKFLOW([`${workflow}@${version}`, 'This worker does not have it'])
    let body: WorkflowBody
    try {
      body = await definition.createBody()
    } catch (error) {
      return error instanceof Error ? error : new Error(String(error))
    }
    try {
      const value = await parse(definition.input, decode(input), 'invalid_input')
      return (ctx) => body(ctx, value)
    } catch (error) {
      return () => {
        throw error
      }
    }
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

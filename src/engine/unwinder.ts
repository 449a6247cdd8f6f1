import type { LoadedRun } from '../contracts/store.ts'
import type { AnswerTo, ChangeSet } from '../core/change_set.ts'
import { isInFlight } from '../core/dispatch.ts'
import { compensationSeq, type NewRecord, type NewWait, type Wait } from '../core/history.ts'
import { isSuspectKey } from '../core/name.ts'
import type { RunRow } from '../core/run.ts'
import { decodeError, encodeError, serializeError } from '../core/serialized_error.ts'
import { CANCELLED, isCancelled } from '../core/unwinding.ts'
import type { AbortError } from '../errors.ts'
import type { Compensable } from '../replay/compensables.ts'
import type { Outcome } from '../replay/operation.ts'
import { Turn } from '../replay/turn.ts'
import { bodyOf } from './body.ts'
import type { Execution, ExecutionParams } from './execution.ts'
import { blockedError } from './faults.ts'
import { mayGoOn } from './lease.ts'
import { MACROTASK } from './macrotask.ts'
import { startBody } from './run_context.ts'
import { owedResults } from './owed_results.ts'
import { RunWriter, type TurnEnding } from './run_writer.ts'
import { StallTimer } from './stall_timer.ts'
import { StepRunner } from './step_runner.ts'

type Attempted =
  | { kind: 'ended'; outcome: Outcome; attempts: number }
  /** Another attempt follows, not here. */
  | { kind: 'later'; attempts: number; error: string; retryIn: number }

/**
 * Undoes what a failed or cancelled run has done: replays the body to get its compensations, runs those that have
 * not been recorded, the latest delivery first, and then ends the run with what it failed with, or hands that on.
 */
export class Unwinder implements Execution {
  readonly resident = null
  #params: ExecutionParams
  #writer: RunWriter
  #steps: StepRunner
  /** Null: it was interrupted. */
  #attempted = Promise.withResolvers<Attempted | null>()
  /** The last attempt that failed of the compensation at work. */
  #failed: { attempts: number; error: string } | null = null
  #voided = new AbortController()
  #isDraining = false
  #leaving = Promise.withResolvers<null>()
  /** Number of the newest inbox entry: nobody takes any of them. */
  #seenInbox = 0

  constructor(row: RunRow, params: ExecutionParams) {
    this.#params = params
    this.#writer = new RunWriter(row, params)
    this.#steps = new StepRunner(row, {
      ...params,
      mayBegin: async () => (await this.#mayGoOn()) && !this.#isDraining,
      listener: {
        ended: (_seq, outcome, attempts) =>
          this.#attempted.resolve({ kind: 'ended', outcome, attempts }),
        attemptFailed: (_seq, { attempts, error, retryIn }) => {
          this.#failed = { attempts, error }
          if (retryIn !== null || this.#isDraining) this.#putOff(retryIn ?? 0)
        },
        idle: () => this.#isDraining && this.#putOff(0),
      },
    })
  }

  get row(): RunRow {
    return this.#writer.row
  }

  async run(row: RunRow, loaded: LoadedRun): Promise<TurnEnding> {
    this.#writer.row = row
    this.#writer.clock.read(loaded.now)
    this.#steps.undone = loaded.undone
    this.#seenInbox = Math.max(row.inboxSeq, loaded.inbox.at(-1)?.no ?? 0)
    const replayed = await this.#replay(loaded)
    if (replayed === null) return this.#writer.end({}, { kind: 'release' })
    if (!Array.isArray(replayed)) return this.#writer.block({}, replayed)
    const unsettled = await this.#settleWaits(loaded, replayed)
    if (unsettled) return unsettled
    const undone = new Set(loaded.history.map(({ seq }) => seq))
    const due = replayed.filter(({ seq }) => !undone.has(compensationSeq(seq)))
    for (const compensable of due) {
      if (this.#isDraining) return this.#writer.end({}, { kind: 'release' })
      const wait = loaded.waits.find(({ seq }) => seq === compensationSeq(compensable.seq))
      const ending = await this.#undo(compensable, wait)
      if (ending) return ending
    }
    return this.#conclude(row, loaded)
  }

  drain(): void {
    this.#isDraining = true
    this.#leaving.resolve(null)
    // Between two attempts nothing is at work, and the next one is not begun here.
    if (this.#steps.isIdle) this.#putOff(0)
  }

  abort(reason: AbortError): void {
    this.#steps.drain(reason)
    this.drain()
  }

  release(reason: AbortError): void {
    this.abort(reason)
    this.#voided.abort(reason)
  }

  discard(reason: AbortError): void {
    this.release(reason)
  }

  quiet(): Promise<void> {
    return this.#steps.leave()
  }

  #mayGoOn(): Promise<boolean> {
    const discard = (reason: AbortError) => this.discard(reason)
    return mayGoOn(this.#params.lease, { voided: this.#voided.signal, discard })
  }

  /**
   * Everything the body did that has a compensation, the latest first; or why that cannot be told. Null: the run leaves
   * meanwhile.
   */
  async #replay(loaded: LoadedRun) {
    const { registry } = this.#params
    const stall = new StallTimer(this.#writer.facts, this.#params)
    stall.arm()
    const found = bodyOf(this.row, { input: loaded.input!, registry })
    const body = await Promise.race([found, this.#leaving.promise])
    stall.end()
    if (body === null) return null
    if (body.kind === 'missing') return serializeError(body.error)
    const settled = Promise.withResolvers<void>()
    const turn = new Turn({
      history: loaded.history,
      waits: loaded.waits.filter(isOfBody),
      children: new Map(),
      seenInbox: 0,
      macrotask: MACROTASK,
      monotonic: () => performance.now(),
      fetchOutcomes: async () => [],
      onSettled: settled.resolve,
      isUnwinding: true,
    })
    startBody(body.run, this.#params, {
      ...{ turn, writer: this.#writer, voided: this.#voided.signal },
      fail: () => {},
    })
    await settled.promise
    const { fault } = turn
    const compensables = turn.compensables({ ofUnrecorded: isCancelled(this.row) })
    turn.discard()
    return fault ? blockedError(fault) : compensables
  }

  /**
   * A run that is cancelled leaves the waits of its body: signals that came for them go on to others. Steps in flight
   * elsewhere that may have to be undone are waited for, until their deadlines.
   */
  async #settleWaits(
    { waits, inbox, now }: LoadedRun,
    compensables: readonly Compensable[]
  ): Promise<TurnEnding | null> {
    const undone = new Set(compensables.map(({ seq }) => seq))
    const owed = waits.filter((wait) => isInFlight(wait) && undone.has(wait.seq))
    const { records, dueAt } = owedResults({ owed, inbox, now })
    const isStillOwed = (wait: Wait) =>
      owed.includes(wait) && records.every(({ seq }) => seq !== wait.seq)
    const left = waits.filter((wait) => wait.kind !== 'compensation' && !isStillOwed(wait))
    const closed = left.map(({ seq }) => seq)
    if (closed.length > 0) {
      const answer = await this.#writer.write({ records, closed }, { kind: 'continue' })
      if (answer.type !== 'committed') return this.#writer.unwritten(answer)
      if (dueAt === null) this.#seenInbox = answer.inboxSeq
    }
    if (dueAt !== null) return this.#suspend({}, { dueAt, dueIn: null })
    // What was recorded decides what is undone, and with what.
    return records.length > 0 ? 'unwinding' : null
  }

  async #undo(compensable: Compensable, wait: Wait | undefined): Promise<TurnEnding | null> {
    const { dueAt = null, attempts = 0 } = wait ?? {}
    // Woken early, by the end of a child perhaps: the next attempt has its time.
    if (dueAt !== null && dueAt > this.#writer.clock.lastReading)
      return this.#suspend({}, { dueAt, dueIn: null })
    const seq = compensationSeq(compensable.seq)
    const isNoted = isSuspectKey(this.row.claimKey)
    if (isNoted) {
      const opened = [waitOf(compensable, { attempts, error: wait?.error ?? null, dueIn: null })]
      const answer = await this.#writer.write({ opened }, { kind: 'continue' })
      if (answer.type !== 'committed') return this.#writer.unwritten(answer)
    }
    if (!(await this.#mayGoOn())) return 'lost'
    const startedAt = performance.now()
    const attempted = await this.#attempt({ ...compensable.task, seq, attempts })
    if (attempted === null) return this.#writer.end({}, { kind: 'release' })
    if (attempted.kind === 'later') {
      const { retryIn: dueIn } = attempted
      return this.#suspend(
        { opened: [waitOf(compensable, { ...attempted, dueIn })] },
        { dueAt: null, dueIn }
      )
    }
    const durationMs = Math.round(performance.now() - startedAt)
    const closed = wait || isNoted ? [seq] : []
    const write = (outcome: Outcome) => {
      const records = [recordOf(compensable, { ...attempted, outcome, durationMs })]
      return this.#writer.write({ records, closed }, { kind: 'continue' })
    }
    const answer = await write(attempted.outcome)
    if (answer.type !== 'refused') return this.#gone(answer)
    // The database does not take what it came to: a failure of this compensation, and of no other.
    const { maxPayloadBytes: maxBytes } = this.#params.options
    const error = encodeError(serializeError(answer.error), { maxBytes })
    return this.#gone(await write({ status: 'failed', error }))
  }

  async #gone(answer: AnswerTo<ChangeSet>): Promise<TurnEnding | null> {
    return answer.type === 'committed' ? null : this.#writer.unwritten(answer)
  }

  /** Null: it was interrupted. */
  async #attempt(task: Parameters<StepRunner['start']>[0]): Promise<Attempted | null> {
    const { signal } = this.#voided
    if (signal.aborted || this.#isDraining) return null
    this.#failed = null
    this.#attempted = Promise.withResolvers()
    const { promise: aborted, resolve: abort } = Promise.withResolvers<null>()
    const onAbort = () => abort(null)
    signal.addEventListener('abort', onAbort, { once: true })
    this.#steps.start(task)
    const attempted = await Promise.race([this.#attempted.promise, aborted])
    signal.removeEventListener('abort', onAbort)
    return attempted
  }

  #putOff(retryIn: number): void {
    this.#attempted.resolve(this.#failed && { kind: 'later', ...this.#failed, retryIn })
  }

  #suspend(
    { opened = [] }: { opened?: NewWait[] },
    time: { dueAt: number | null; dueIn: number | null }
  ): Promise<TurnEnding> {
    const end = { kind: 'suspend' as const, needs: null, ...time }
    return this.#writer.end({ opened, seenInbox: this.#seenInbox }, end)
  }

  async #conclude(row: RunRow, loaded: LoadedRun): Promise<TurnEnding> {
    const seenInbox = this.#seenInbox
    const error = loaded.error!
    if (isCancelled(row))
      return this.#writer.end({ seenInbox }, { kind: 'cancel', error, errorCode: CANCELLED })
    const failure = {
      kind: 'fail' as const,
      error,
      errorCode: decodeError(error).code ?? row.errorCode ?? 'failed',
    }
    const { end, changes } = await this.#params.routing.settle(row, {
      failure,
      input: loaded.input!,
    })
    return this.#writer.end({ ...changes, seenInbox }, end)
  }
}

function isOfBody({ seq }: Wait): boolean {
  return seq >= 0
}

function placeOf({ seq, name }: Compensable) {
  return { seq: compensationSeq(seq), kind: 'compensation' as const, name, after: 0 }
}

function waitOf(
  compensable: Compensable,
  { attempts, error, dueIn }: Pick<NewWait, 'attempts' | 'error' | 'dueIn'>
): NewWait {
  const none = { token: null, target: null, inputs: null, dueAt: null, dispatch: null }
  return { ...placeOf(compensable), ...none, attempts, error, dueIn }
}

function recordOf(
  compensable: Compensable,
  { outcome, attempts, durationMs }: { outcome: Outcome; attempts: number; durationMs: number }
): NewRecord {
  return {
    ...placeOf(compensable),
    ...{ ordinal: null, status: outcome.status, attempts, output: null, durationMs },
    error: outcome.status === 'failed' ? outcome.error : null,
  }
}

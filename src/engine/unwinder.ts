import type { LoadedRun } from '../contracts/store.ts'
import { compensationSeq, type NewRecord, type NewWait } from '../core/history.ts'
import type { RunRow } from '../core/run.ts'
import { decodeError } from '../core/serialized_error.ts'
import type { Outcome } from '../replay/operation.ts'
import { type Compensable, Turn } from '../replay/turn.ts'
import { bodyOf } from './body.ts'
import type { Execution, ExecutionParams } from './execution.ts'
import { blockedError } from './faults.ts'
import { MACROTASK } from './macrotask.ts'
import { contextOf } from './run_context.ts'
import { type Changes, RunWriter, type TurnEnding } from './run_writer.ts'
import { runInScope } from './scope.ts'
import { StepRunner } from './step_runner.ts'
import { serializeError } from '../core/serialized_error.ts'

type Attempted =
  | { kind: 'ended'; outcome: Outcome; attempts: number }
  | { kind: 'later'; attempts: number; error: string; retryIn: number }

/**
 * Undoes what a failed or cancelled run has done: replays the body to get its compensations, runs those that have
 * not been recorded, the latest delivery first, and then ends the run with what it failed with, or hands that on.
 */
export class Unwinder implements Execution {
  #params: ExecutionParams
  #writer: RunWriter
  #steps: StepRunner
  #attempted = Promise.withResolvers<Attempted>()
  #voided = new AbortController()
  #isDraining = false

  constructor(row: RunRow, params: ExecutionParams) {
    this.#params = params
    this.#writer = new RunWriter(row, params)
    this.#steps = new StepRunner({
      runId: row.id,
      log: params.log,
      maxPayloadBytes: params.options.maxPayloadBytes,
      step: (name) => params.registry.step(name),
      mayBegin: async () => !this.#isDraining && (params.lease.isHeld || params.lease.held()),
      jitter: Math.random,
      listener: {
        ended: (_seq, outcome, attempts) =>
          this.#attempted.resolve({ kind: 'ended', outcome, attempts }),
        attemptFailed: (_seq, { attempts, error, retryIn }) => {
          if (retryIn !== null) this.#attempted.resolve({ kind: 'later', attempts, error, retryIn })
        },
      },
    })
  }

  get row(): RunRow {
    return this.#writer.row
  }

  async run(row: RunRow, loaded: LoadedRun): Promise<TurnEnding> {
    this.#writer.row = row
    this.#writer.clock.read(loaded.now)
    const seenInbox = loaded.inbox.at(-1)?.no ?? row.inboxSeq
    const replayed = await this.#replay(loaded)
    if (!Array.isArray(replayed)) return this.#writer.block({}, replayed)
    const undone = new Set(loaded.history.map(({ seq }) => seq))
    const due = replayed.filter(({ seq }) => !undone.has(compensationSeq(seq)))
    for (const compensable of due) {
      if (this.#isDraining) return this.#writer.end({}, { kind: 'release' })
      const ending = await this.#undo(compensable, loaded)
      if (ending) return ending
    }
    return this.#conclude(row, { seenInbox, loaded })
  }

  drain(): void {
    this.#isDraining = true
  }

  release(reason: Error): void {
    this.#isDraining = true
    this.#steps.drain(reason)
    this.#voided.abort(reason)
  }

  discard(reason: Error): void {
    this.release(reason)
  }

  quiet(): Promise<void> {
    return this.#steps.quiet()
  }

  /** Everything the body did that has a compensation, the latest first; or why that cannot be told. */
  async #replay(loaded: LoadedRun) {
    const body = await bodyOf(this.row, {
      input: loaded.input!,
      registry: this.#params.registry,
    })
    if (body instanceof Error) return serializeError(body)
    const settled = Promise.withResolvers<void>()
    const turn = new Turn({
      history: loaded.history,
      waits: loaded.waits.filter(({ seq }) => seq >= 0),
      children: new Map(),
      seenInbox: 0,
      macrotask: MACROTASK,
      monotonic: () => performance.now(),
      fetchOutcomes: async () => [],
      onSettled: settled.resolve,
      isUnwinding: true,
    })
    const ctx = contextOf(this.#params, {
      turn,
      run: this.row,
      abortSignal: this.#voided.signal,
      clock: this.#writer.clock,
    })
    turn.start(() => runInScope({ kind: 'body', ctx, fail: () => {} }, () => body(ctx)))
    await settled.promise
    const { fault } = turn
    const wasCancelled = this.row.errorCode === 'cancelled'
    const compensables = turn.compensables({ ofUnrecorded: wasCancelled })
    turn.discard()
    return fault ? blockedError(fault) : compensables
  }

  async #undo(compensable: Compensable, loaded: LoadedRun): Promise<TurnEnding | null> {
    const seq = compensationSeq(compensable.seq)
    const { lease } = this.#params
    if (!lease.isHeld && !(await lease.held())) return 'lost'
    this.#attempted = Promise.withResolvers()
    const aborted = new Promise<null>((resolve) => {
      this.#voided.signal.addEventListener('abort', () => resolve(null), { once: true })
    })
    const attempts = loaded.waits.find((wait) => wait.seq === seq)?.attempts ?? 0
    this.#steps.start({ ...compensable.task, seq, attempts })
    const attempted = await Promise.race([this.#attempted.promise, aborted])
    if (attempted === null) return this.#writer.end({}, { kind: 'release' })
    if (attempted.kind === 'later') return this.#later(compensable, attempted)
    const hasWait = loaded.waits.some((wait) => wait.seq === seq)
    const records = [recordOf(compensable, attempted)]
    const changes: Changes = { records, closed: hasWait ? [seq] : [] }
    const answer = await this.#writer.write(changes, { kind: 'continue' })
    return answer.type === 'committed' ? null : this.#writer.unwritten(answer)
  }

  #later(
    { seq, name }: Compensable,
    { attempts, error, retryIn }: Attempted & { kind: 'later' }
  ): Promise<TurnEnding> {
    const place = { seq: compensationSeq(seq), kind: 'compensation' as const, name, after: 0 }
    const none = { token: null, target: null, dueAt: null }
    const wait: NewWait = { ...place, ...none, dueIn: retryIn, attempts, error }
    const end = { kind: 'suspend' as const, dueAt: null, dueIn: retryIn, needs: null }
    return this.#writer.end({ opened: [wait] }, end)
  }

  async #conclude(
    row: RunRow,
    { seenInbox, loaded }: { seenInbox: number; loaded: LoadedRun }
  ): Promise<TurnEnding> {
    const error = loaded.error!
    const errorCode = row.errorCode ?? 'failed'
    if (errorCode === 'cancelled')
      return this.#writer.end({ seenInbox }, { kind: 'cancel', error, errorCode })
    const failure = {
      kind: 'fail' as const,
      error,
      errorCode: decodeError(error).code ?? errorCode,
    }
    const { end, changes } = await this.#params.routing.settle(row, {
      failure,
      input: loaded.input!,
    })
    return this.#writer.end({ ...changes, seenInbox }, end)
  }
}

function recordOf(
  { seq, name }: Compensable,
  { outcome, attempts }: Attempted & { kind: 'ended' }
): NewRecord {
  return {
    ...{ seq: compensationSeq(seq), kind: 'compensation', name, after: 0, ordinal: null },
    status: outcome.status,
    attempts,
    output: null,
    error: outcome.status === 'failed' ? outcome.error : null,
    durationMs: 0,
  }
}

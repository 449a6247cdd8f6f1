import { setTimeout as delay } from 'node:timers/promises'
import { errorLine } from '../core/error_line.ts'
import { stepId } from '../core/history.ts'
import { decode, encode } from '../core/payload.ts'
import { decideRetry, type RetryPolicy, retryPolicy } from '../core/retry_policy.ts'
import type { RunRow } from '../core/run.ts'
import { encodeError, type SerializedError, serializeError } from '../core/serialized_error.ts'
import { type AbortError, E_UNKNOWN_STEP } from '../errors.ts'
import type { Outcome, StepTask } from '../replay/operation.ts'
import type { StepContext } from '../types/step.ts'
import { stepTimeout, turnOver } from './abort_reasons.ts'
import type { ExecutionParams } from './execution.ts'
import { BoundLogger } from './run_logger.ts'
import { parse } from './schema.ts'
import { runInScope } from './scope.ts'

/** A longer back-off suspends the run instead of keeping it here. */
const LONGEST_WAIT_HERE_MS = 1_000
/** How long a further attempt waits for the function of one that timed out to return. */
const OVERRUN_GRACE_MS = 5_000

/** What the attempts of a step tell their run. */
interface StepListener {
  ended(seq: number, outcome: Outcome, attempts: number): void
  attemptFailed(
    seq: number,
    failure: { attempts: number; error: string; retryIn: number | null }
  ): void
  /** No attempt is under way any more: one follows after a pause, or none. */
  idle(): void
}

interface StepRunnerParams extends Pick<ExecutionParams, 'log' | 'options' | 'registry'> {
  run: Pick<RunRow, 'id' | 'workflow'>
  listener: StepListener
  /** Whether another attempt may begin now: the run is still this process's to execute. */
  mayBegin: () => Promise<boolean>
}

type Attempted = { output: string } | { error: SerializedError }

/** Runs the steps of one run: attempts, time limits, retries. */
export class StepRunner {
  /** Positions that were undone before a requeue, once for each time. */
  undone: readonly number[] = []
  #params: StepRunnerParams
  #controllers = new Map<number, AbortController>()
  #functions = new Set<Promise<unknown>>()
  /** Functions whose return is waited for since their run has left its slot. */
  #left = new WeakSet<Promise<unknown>>()
  #abandoned = new Set<number>()
  #attempts = 0
  #isStopped = false

  constructor(run: Pick<RunRow, 'id' | 'workflow'>, params: Omit<StepRunnerParams, 'run'>) {
    this.#params = { ...params, run }
  }

  /** Begins a step. Its end, or the failure of an attempt, is told to the listener; a stopped runner begins nothing. */
  start(task: StepTask): void {
    if (!this.#isStopped) void this.#run(task)
  }

  /**
   * Aborts one step whose outcome nobody waits for, and starts no further attempt of it. If it succeeds all the same,
   * that is told; if it fails, what it has done is not known.
   */
  abandon(seq: number): void {
    this.#abandoned.add(seq)
    const reason = turnOver('The run ended without waiting for this step')
    this.#controllers.get(seq)?.abort(reason)
  }

  /** Aborts the signals of all steps and starts no further attempt; outcomes that come all the same are told. */
  drain(reason: AbortError): void {
    this.#isStopped = true
    for (const controller of this.#controllers.values()) controller.abort(reason)
  }

  /** Resolves when the functions that are at work now have returned, those that outlived their time limit included. */
  async quiet(): Promise<void> {
    await Promise.allSettled(this.#functions)
  }

  /** As `quiet`, without the functions that an earlier call waits for. */
  async leave(): Promise<void> {
    const left = [...this.#functions].filter((running) => !this.#left.has(running))
    for (const running of left) this.#left.add(running)
    await Promise.allSettled(left)
  }

  /** Whether no attempt is under way whose outcome is still to be told. */
  get isIdle(): boolean {
    return this.#attempts === 0
  }

  async #run(task: StepTask): Promise<void> {
    for (let attempt = task.attempts + 1; ; attempt++) {
      this.#attempts++
      const pauseMs = this.#tell(task, attempt, await this.#attempt(task, attempt))
      this.#attempts--
      if (this.isIdle) this.#params.listener.idle()
      if (pauseMs === null) return
      await delay(pauseMs)
      if (this.#abandoned.has(task.seq)) return
      if (!(await this.#params.mayBegin()) || this.#isStopped) return
    }
  }

  /** Tells the listener what an attempt came to. How long to pause before the next one here; null = there is none. */
  #tell(task: StepTask, attempts: number, came: Attempted): number | null {
    const { listener, options } = this.#params
    const { seq } = task
    if ('output' in came) {
      listener.ended(seq, { status: 'completed', output: came.output }, attempts)
      return null
    }
    if (this.#isStopped || this.#abandoned.has(seq)) return null
    const error = encodeError(came.error, { maxBytes: options.maxPayloadBytes })
    const decision = decideRetry({
      error: came.error,
      attempt: attempts,
      policy: this.#policyOf(task),
      jitter: Math.random(),
    })
    if (decision.kind === 'give_up') {
      listener.ended(seq, { status: 'failed', error }, attempts)
      return null
    }
    this.#logFailure(task, { attempts, error: came.error, retryIn: decision.delayMs })
    const isLong = decision.delayMs > LONGEST_WAIT_HERE_MS
    listener.attemptFailed(seq, { attempts, error, retryIn: isLong ? decision.delayMs : null })
    return isLong ? null : decision.delayMs
  }

  /** The last failure of a step reaches its body; those before it would be seen by nobody. */
  #logFailure(
    { name }: StepTask,
    failure: { attempts: number; error: SerializedError; retryIn: number }
  ): void {
    const { log, run } = this.#params
    const { attempts: attempt, error, retryIn } = failure
    log.warn(
      { runId: run.id, workflow: run.workflow, step: name, attempt, err: error },
      `Step "${name}" of ${run.id} has failed, attempt ${attempt}; the next one in ${Math.round(retryIn)} ms: ${errorLine(error)}`
    )
  }

  #policyOf(task: StepTask): RetryPolicy {
    const defined =
      'input' in task.work ? this.#params.registry.step(task.name)?.options : undefined
    return retryPolicy({
      retries: task.call.retries ?? defined?.retries,
      backoffMs: task.call.backoffMs ?? defined?.backoffMs,
    })
  }

  async #attempt(task: StepTask, attempt: number): Promise<Attempted> {
    const controller = new AbortController()
    this.#controllers.set(task.seq, controller)
    const { promise: failure, reject } = Promise.withResolvers<never>()
    let isOver = false
    const fail = (reason: unknown) => {
      if (isOver) this.#report(task, reason)
      else reject(reason)
    }
    const running = runInScope({ kind: 'step', name: task.name, fail }, async () =>
      this.#call(task, this.#contextOf(task, { attempt, signal: controller.signal }))
    )
    this.#functions.add(running)
    void running.then(
      () => this.#functions.delete(running),
      () => this.#functions.delete(running)
    )
    try {
      const value = await this.#limited(task, { running, failure, controller })
      const of = `step "${task.name}"`
      const maxBytes = this.#params.options.maxPayloadBytes
      return { output: encode(value, { label: 'output', of, maxBytes }) }
    } catch (error) {
      return { error: serializeError(error) }
    } finally {
      isOver = true
      this.#controllers.delete(task.seq)
    }
  }

  /** Nobody waits for it any more, and nobody would ever know. */
  #report({ name }: StepTask, err: unknown): void {
    const { log, run } = this.#params
    log.error(
      { err, runId: run.id, step: name },
      'A promise of a step was rejected after the step had ended'
    )
  }

  /** What the attempt comes to, or its failure when its time is over or a promise of its own was left to reject. */
  async #limited(
    task: StepTask,
    params: { running: Promise<unknown>; failure: Promise<never>; controller: AbortController }
  ): Promise<unknown> {
    const { running, failure, controller } = params
    const definition = 'input' in task.work ? this.#params.registry.step(task.name) : undefined
    const timeoutMs = task.call.timeoutMs ?? definition?.options.timeoutMs
    if (timeoutMs === undefined) return Promise.race([running, failure])
    const timer = new AbortController()
    const timedOut = delay(timeoutMs, 'timed out' as const, { signal: timer.signal })
    try {
      const first = await Promise.race([
        running.then((value) => ({ value })),
        failure,
        timedOut.catch(() => 'cancelled' as const),
      ])
      if (typeof first === 'object') return first.value
    } finally {
      timer.abort()
    }
    const error = stepTimeout(task.name, timeoutMs)
    controller.abort(error)
    await Promise.race([running.catch(() => {}), delay(OVERRUN_GRACE_MS, null, { ref: false })])
    throw error
  }

  async #call(task: StepTask, context: StepContext): Promise<unknown> {
    if ('local' in task.work) return task.work.local(context)
    const definition = this.#params.registry.step(task.name)
    if (!definition)
      throw new E_UNKNOWN_STEP([
        task.name,
        'Import the file that defines it, or put it into app/steps',
      ])
    const { input: inputSchema, output: outputSchema } = definition.options
    const input = await parse(inputSchema, decode(task.work.input), 'invalid_input')
    return parse(outputSchema, await definition.run(input, context), 'invalid_output')
  }

  #contextOf(task: StepTask, params: { attempt: number; signal: AbortSignal }): StepContext {
    const { id: runId, workflow } = this.#params.run
    const id = stepId(runId, task.seq, this.undone)
    const log = new BoundLogger(this.#params.log, { runId, workflow, step: task.name })
    return { id, ...params, log, heartbeat: () => {} }
  }
}

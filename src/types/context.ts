import type { Instant } from '../core/instant.ts'
import type { SearchAttributes } from '../core/search_attributes.ts'
import type { RunLogger, StepArgs, StepCall, StepContext, StepHandler, StepOutput } from './step.ts'
import type { WorkflowClass, WorkflowRef } from './workflow.ts'

export interface AllOptions {
  /** `failFast` (default) rejects at the first failure, `waitAll` after all children have ended. */
  mode?: 'waitAll' | 'failFast' | undefined
  /** Children in flight at once; default all. */
  concurrency?: number | undefined
}

/** A child that was started and not awaited. */
export interface ChildHandle {
  readonly runId: string
}

/**
 * What a body may ask for. Each call that returns a promise takes one position of the history; a body awaits
 * nothing but these. Where one takes options, it rejects with E_UNKNOWN_OPTION for an option that does not
 * exist, and with E_INVALID_OPTION for options that are no object.
 */
export interface WorkflowCtx {
  readonly runId: string
  readonly workflow: string
  readonly version: string
  readonly namespace: string
  /**
   * Aborts only once the turn is void: for code that must stop early, never for decisions. Its `reason` is that of a
   * step's signal.
   */
  readonly abortSignal: AbortSignal
  /** Prints only past the recorded history. */
  readonly log: RunLogger

  /** Runs a registered step by name, or by the function that `defineStep` or `@Step` stamped. */
  step<O = unknown>(name: string, input?: unknown, options?: StepCall<O>): Promise<O>
  step<H extends StepHandler>(step: H, ...args: StepArgs<H>): Promise<StepOutput<H>>
  /**
   * Runs `fn` in the worker that executes the run and records what it returns. A failed attempt is repeated three times,
   * and has no time limit, unless `options` say otherwise; then it rejects with a StepError.
   */
  localStep<T>(
    name: string,
    fn: (step: StepContext) => T | Promise<T>,
    options?: StepCall<T>
  ): Promise<T>

  /** A duration such as '5 minutes' or 300_000 (ms). */
  sleep(duration: string | number): Promise<void>
  /** An instant that has passed wakes at once. Throws E_INVALID_INSTANT. */
  sleepUntil(instant: Instant): Promise<void>

  /** Resolves to the payload of the next signal for this token; rejects with code `signal_timeout` after `timeout`. */
  waitForSignal<T = unknown>(
    token: string,
    options?: { timeout?: string | number | undefined }
  ): Promise<T>
  /**
   * Sends a signal to the run that waits for `token`, in the write that records the operation; without one it is kept
   * for the next that waits. Rejects with E_INVALID_NAME, E_UNSERIALIZABLE or E_PAYLOAD_TOO_LARGE.
   */
  sendSignal(token: string, payload?: unknown): Promise<void>

  /**
   * Runs another workflow and resolves to its output; rejects with a ChildError, whose code is the child's own.
   * `id`: the child's run id, by default derived from the parent's; if a run has it already, of whatever workflow, the
   * operation rejects with code `run_id_taken`.
   */
  child<I, O>(workflow: WorkflowClass<I, O> | WorkflowRef<I, O>, input: I, id?: string): Promise<O>
  child<O = unknown>(workflow: string, input?: unknown, id?: string): Promise<O>
  /**
   * Starts another workflow without waiting for it: it goes on when this run ends. Resolves when the child is stored;
   * with an `id` that a run has already it rejects with code `run_id_taken`.
   */
  startChild<I, O>(
    workflow: WorkflowClass<I, O> | WorkflowRef<I, O>,
    input: I,
    id?: string
  ): Promise<ChildHandle>
  startChild(workflow: string, input?: unknown, id?: string): Promise<ChildHandle>
  /** One child per input; resolves to their outputs in the order of the inputs. */
  all<I, O>(
    workflow: WorkflowClass<I, O> | WorkflowRef<I, O>,
    inputs: readonly I[],
    options?: AllOptions
  ): Promise<O[]>
  all<O = unknown>(workflow: string, inputs: readonly unknown[], options?: AllOptions): Promise<O[]>
  /**
   * One child per input; resolves when all have ended, to what `Promise.allSettled` gives. The reason of a rejected item
   * is a ChildError.
   */
  allSettled<I, O>(
    workflow: WorkflowClass<I, O> | WorkflowRef<I, O>,
    inputs: readonly I[],
    options?: Pick<AllOptions, 'concurrency'>
  ): Promise<PromiseSettledResult<O>[]>
  allSettled<O = unknown>(
    workflow: string,
    inputs: readonly unknown[],
    options?: Pick<AllOptions, 'concurrency'>
  ): Promise<PromiseSettledResult<O>[]>

  /**
   * Sets what the run is found by: those of the same name are replaced, null takes one away. Rejects with code
   * `schema_validation` when they do not fit the workflow's `searchAttributes`, which parses what is given here.
   */
  upsertSearchAttributes(values: SearchAttributes): Promise<void>

  /** The database's time: recorded, and never earlier than an earlier reading of this run. */
  now(): Date
  /** In [0, 1); derived from run and position. */
  random(): number
  /** A UUID v4 derived from run and position. */
  uuid(): string
}

import type { StandardSchemaV1 } from '@standard-schema/spec'

/** A logger as steps and bodies see it: the application's, bound to the run, and in a step to the step too. */
export interface RunLogger {
  debug(objectOrMessage: unknown, ...rest: unknown[]): void
  info(objectOrMessage: unknown, ...rest: unknown[]): void
  warn(objectOrMessage: unknown, ...rest: unknown[]): void
  error(objectOrMessage: unknown, ...rest: unknown[]): void
}

/** What a step's code is told about its execution. */
export interface StepContext {
  /**
   * `<runId>:<seq>`: the same for every attempt, so that it can serve as an idempotency key. A step that was undone and
   * runs again after a requeue has another one, with `~1` behind it, then `~2`, and so has its compensation.
   */
  readonly id: string
  /** 1 for the first attempt. */
  readonly attempt: number
  /**
   * Aborts on a time-out, when the run is cancelled or over, when its lease is lost, and when its worker stops. Its
   * `reason` is then an `errors.AbortError`, whose `code` says which of these it was.
   */
  readonly signal: AbortSignal
  readonly log: RunLogger
  /**
   * Says that a step which is executed outside of the worker is alive, so that it is not sent again. A step that runs
   * in the worker itself needs none, and the call has no effect there. `progress` is not kept.
   */
  heartbeat(progress?: unknown): void
}

export interface StepOptions {
  /** Further attempts after the first: a whole number from 0 to 1,000,000. Default 3. */
  retries?: number | undefined
  /** A longer attempt is aborted and fails with `step_timeout`. Whole ms, from 1 to 2,147,483,647; default none. */
  timeoutMs?: number | undefined
  /** Delay before the second attempt, in whole ms; doubles with each further one, up to 30 s. Default 250. */
  backoffMs?: number | undefined
  /** Any Standard Schema; parses the input before each attempt. */
  input?: StandardSchemaV1 | undefined
  /** Any Standard Schema; parses what the step returned. */
  output?: StandardSchemaV1 | undefined
}

/** Options of one call of a step; they override those of its definition. One out of range is E_INVALID_STEP. */
export interface StepCall<O> {
  /** Further attempts after the first: a whole number from 0 to 1,000,000. */
  retries?: number | undefined
  /** A longer attempt is aborted and fails with `step_timeout`. Whole ms, from 1 to 2,147,483,647. */
  timeoutMs?: number | undefined
  /** Delay before the second attempt, in whole ms. */
  backoffMs?: number | undefined
  /**
   * Undoes the step when the run fails later, or is cancelled with `compensate`: a function, or a registered step, which
   * gets the output as its input. The output is undefined when it is not known how the step ended.
   */
  compensate?: ((output: O, step: StepContext) => unknown) | undefined
}

/** Anything callable with at most an input and the step's context. */
export type StepHandler = (input: any, step: StepContext) => unknown
export type StepInput<H extends StepHandler> = Parameters<H> extends [] ? void : Parameters<H>[0]
export type StepOutput<H extends StepHandler> = Awaited<ReturnType<H>>

declare const STEP: unique symbol
/** A function that `defineStep` returned. */
export type StepRef<I, O> = ((input: I, step: StepContext) => Promise<O>) & {
  readonly [STEP]: true
  readonly stepName: string
}

export type StepArgs<H extends StepHandler, P = Parameters<H>[0], R = StepCall<StepOutput<H>>> = [
  P,
] extends [void]
  ? [input?: undefined, options?: R]
  : unknown extends P
    ? [input?: unknown, options?: R]
    : undefined extends P
      ? [input?: P, options?: R]
      : [input: P, options?: R]

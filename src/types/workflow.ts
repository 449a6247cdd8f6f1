import type { StandardSchemaV1 } from '@standard-schema/spec'
import type { SerializedError } from '../core/serialized_error.ts'

export interface WorkflowOptions {
  name: string
  /** Default '1'. */
  version?: string | undefined
  /** Tags of every run of the workflow. */
  tags?: readonly string[] | undefined
  /** A run whose body takes longer is cancelled with `execution_timeout`: a duration such as '2 hours', or ms. */
  executionTimeout?: string | number | undefined
  /** Takes care of runs that end `dead`; default the one of the configuration. */
  deadLetterWorkflow?: LazyWorkflowTarget | undefined
  /** Workflows that take care of failures, by code. */
  onError?: readonly FailureRoute[] | undefined
  /** Any Standard Schema; parses the stored input when a turn begins. */
  input?: StandardSchemaV1 | undefined
  /** Any Standard Schema; parses what a body gives to `ctx.upsertSearchAttributes`. */
  searchAttributes?: StandardSchemaV1 | undefined
}

/** An error class that names its code. */
export interface ErrorWithCode {
  readonly code?: string | undefined
  new (...args: any[]): Error
}

/** Which failures of a workflow are handed to which other. */
export interface FailureRoute {
  /** A code, or an error class with a static one; left out, the route takes what no other does. */
  code?: string | ErrorWithCode | undefined
  workflow: LazyWorkflowTarget
}

/** What the handler of a dead run gets. */
export interface DeadLetter<I = unknown> {
  deadRunId: string
  workflow: string
  input: I
  error?: SerializedError | undefined
}

/** What the handler of a failure gets. */
export interface OnErrorInput<I = unknown> {
  runId: string
  workflow: string
  input: I
  error: { message: string; code?: string; details?: unknown }
}

/**
 * A class with a body, which extends BaseWorkflow: that is checked where the class is used. (Its context is checked
 * where the class is written: the two types name each other.)
 */
export interface WorkflowClass<I = any, O = any> {
  new (...args: any[]): { run(ctx: any, input: I): O | Promise<O> }
  workflow?: WorkflowOptions
}

/** Names a workflow without importing it. */
export interface WorkflowRef<I = any, O = any> {
  readonly 'name': string
  /** Default: of classes the highest version, of functions the one registered last. */
  readonly 'version'?: string | undefined
  readonly '~types'?: { input: I; output: O }
}

export type WorkflowTarget<I = any, O = any> = string | WorkflowClass<I, O> | WorkflowRef<I, O>
export type WorkflowModule = { default: WorkflowClass }
/** Also lazily, for workflow files that name each other. */
export type LazyWorkflowTarget =
  WorkflowTarget | (() => WorkflowTarget | Promise<WorkflowTarget | WorkflowModule>)

/** What a workflow is given: of the class, of an instance of it, or of a ref. */
export type InputOf<W> = W extends { run(ctx: any, input: infer I): any }
  ? I
  : W extends abstract new (...args: any[]) => infer Instance
    ? InputOf<Instance>
    : W extends WorkflowRef<infer I, any>
      ? I
      : never
/** What a run of a workflow ends with: of the class, of an instance of it, or of a ref. */
export type OutputOf<W> = W extends { run(ctx: any, input: any): infer O }
  ? Awaited<O>
  : W extends abstract new (...args: any[]) => infer Instance
    ? OutputOf<Instance>
    : W extends WorkflowRef<any, infer O>
      ? O
      : never
export type StartArgs<I, Options = StartOptions> = unknown extends I
  ? [input?: unknown, options?: Options]
  : undefined extends I
    ? [input?: I, options?: Options]
    : [input: I, options?: Options]

export interface StartOptions {
  /**
   * Default: a UUID of version 7, which begins with the time of its making and is random behind it: do not use it as a
   * secret. The same workflow under an existing id is that run.
   */
  runId?: string | undefined
  /**
   * A Lucid transaction client: the run exists if and only if it commits. `X.start` refuses it, with
   * E_WAIT_IN_TRANSACTION: use `X.dispatch` or `engine.start`.
   */
  client?: unknown
  /** Names that the run can be listed by, beside those of its workflow: 1 to 200 characters without white space. */
  tags?: readonly string[] | undefined
  /** Default 'default'. The run waits for a worker whose `namespaces` include it. */
  namespace?: string | undefined
  /** 0 (first) to 3 (last); default 1. Another value is E_INVALID_PRIORITY. */
  priority?: 0 | 1 | 2 | 3 | undefined
}

/** Options of a workflow that is registered as a function. */
export interface RegisterOptions<I> extends Pick<
  WorkflowOptions,
  'executionTimeout' | 'deadLetterWorkflow' | 'onError' | 'tags' | 'searchAttributes'
> {
  /** Any Standard Schema; parses the stored input when a turn begins. */
  input?: StandardSchemaV1<unknown, I> | undefined
}

/** A started run. */
export interface RunHandle<O = unknown> {
  readonly runId: string
  /**
   * Resolves to the output; rejects with E_RUN_FAILED when the run ends otherwise, and with E_WAIT_TIMEOUT after
   * `timeoutMs`. Without `timeoutMs` it waits as long as the run takes.
   */
  result(options?: { timeoutMs?: number | undefined }): Promise<O>
}

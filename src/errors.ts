import { createError, Exception } from '@poppinss/utils/exception'

/**
 * Codes that are recorded on runs and steps and matched by users. Codes that start with `E_` are thrown by the
 * package to a caller instead.
 */
export const RECORDED_CODES = Object.freeze([
  'max_recovery_attempts',
  'execution_timeout',
  'step_timeout',
  'step_lost',
  'cancelled',
  'child_failed',
  'run_id_taken',
  'invalid_input',
  'invalid_output',
  'schema_validation',
  'signal_timeout',
  'payload_too_large',
  'unserializable',
  'non_determinism',
  'foreign_await',
  'nested_operation',
  'operation_not_awaited',
  'step_called_directly',
] as const)
export type RecordedCode = (typeof RECORDED_CODES)[number]

/** Recorded codes that say that the code itself is wrong: no failure route matches them. */
export const UNROUTED_CODES: ReadonlySet<string> = new Set<RecordedCode>([
  'non_determinism',
  'foreign_await',
  'nested_operation',
  'operation_not_awaited',
  'step_called_directly',
])

/** What becomes of a thrown `E_` code when a run or a step fails with it. Trying again would not help any of them. */
export const RECORDED_AS: ReadonlyMap<string, RecordedCode> = new Map<string, RecordedCode>([
  ['E_UNSERIALIZABLE', 'unserializable'],
  ['E_PAYLOAD_TOO_LARGE', 'payload_too_large'],
  ['E_NON_DETERMINISM', 'non_determinism'],
  ['E_FOREIGN_AWAIT', 'foreign_await'],
  ['E_NESTED_OPERATION', 'nested_operation'],
  ['E_STEP_CALLED_DIRECTLY', 'step_called_directly'],
])

/* ---------- aborted signals ---------- */

/**
 * Why a signal was aborted. `step_timeout`: the attempt ran longer than its `timeoutMs`. `worker_stopping`: its worker
 * stops, and the step runs again elsewhere. `lease_lost`: the run is this worker's no more. `cancelled`: the run was
 * cancelled, or its execution time is over. `turn_over`: nobody waits for it, since the run has ended, is blocked, or
 * its body is no longer in memory.
 */
export type AbortCode =
  'step_timeout' | 'worker_stopping' | 'lease_lost' | 'cancelled' | 'turn_over'

/** The `reason` of `step.signal` and of `ctx.abortSignal`, once they are aborted. */
export class AbortError extends Error {
  readonly code: AbortCode

  constructor(code: AbortCode, message: string) {
    super(message)
    this.name = 'AbortError'
    this.code = code
  }
}

/* ---------- configuration and arguments ---------- */

export const E_INVALID_CONFIG = createError<[option: string, problem: string]>(
  'Invalid option "%s" in config/durable.ts: %s',
  'E_INVALID_CONFIG'
)

export const E_INVALID_NAME = createError<[kind: string, value: string, problem: string]>(
  'Invalid %s %s: %s. Use 1 to 200 characters, without white space, control characters or surrogates',
  'E_INVALID_NAME',
  400
)

export const E_INVALID_DURATION = createError<[value: string, problem: string]>(
  'Invalid duration %s: %s. Use milliseconds as a number, or a text such as "30s", "5 minutes", "1h30m" or "2 days"',
  'E_INVALID_DURATION'
)

export const E_INVALID_PRIORITY = createError<[value: string]>(
  'Invalid priority %s. Use 0 (first), 1 (the default), 2 or 3',
  'E_INVALID_PRIORITY',
  400
)

export const E_UNKNOWN_OPTION = createError<[option: string, of: string, hint: string]>(
  'There is no option "%s" of %s. %s',
  'E_UNKNOWN_OPTION',
  400
)

export const E_INVALID_OPTION = createError<[what: string, got: string, expected: string]>(
  'Invalid %s: got %s, expected %s',
  'E_INVALID_OPTION',
  400
)

export const E_INVALID_CURSOR = createError<[value: string]>(
  'Invalid cursor %s. Pass "next" of the page before as it is, or no cursor for the first page',
  'E_INVALID_CURSOR',
  400
)

export const E_INVALID_SCHEMA = createError<[where: string]>(
  'The %s is not a Standard Schema. Pass a Zod, Valibot or ArkType schema as it is, and of VineJS the validator that ' +
    'vine.create() or vine.compile() returns',
  'E_INVALID_SCHEMA'
)

export const E_INVALID_INSTANT = createError<[value: string]>(
  'Invalid instant %s. Use a Date, milliseconds since 1970, or an ISO text with its offset, such as ' +
    '"2030-01-31T09:00:00Z"',
  'E_INVALID_INSTANT'
)

/* ---------- payloads ---------- */

/** A value cannot be stored and read back as it is. */
class UnserializableError extends Exception {
  static override code = 'E_UNSERIALIZABLE'

  /** Where the value is, such as `input.items[3].owner`. */
  readonly path: string

  /** @param params.of behind the path, such as ` of step "charge"` */
  constructor(params: { path: string; of?: string; found: string; fix: string; cause?: unknown }) {
    super(
      `Cannot store ${params.path}${params.of ?? ''}: it is ${params.found}. ${params.fix}`,
      params.cause === undefined ? undefined : { cause: params.cause }
    )
    this.path = params.path
  }
}

/** A value is larger than the configuration allows. Sizes are bytes of the stored text, in UTF-8. */
class PayloadTooLargeError extends Exception {
  static override code = 'E_PAYLOAD_TOO_LARGE'
  static override status = 413

  readonly size: number
  readonly limit: number

  /** @param params.atLeast true when the value was measured up to `size` only */
  constructor(params: { what: string; size: number; limit: number; atLeast?: boolean }) {
    super(
      `The ${params.what} is too large: ${params.atLeast ? 'at least ' : ''}${params.size} bytes, and the limit ` +
        `is ${params.limit}. Store it elsewhere and pass its key, or raise "maxPayloadBytes"`
    )
    this.size = params.size
    this.limit = params.limit
  }
}

export { UnserializableError as E_UNSERIALIZABLE, PayloadTooLargeError as E_PAYLOAD_TOO_LARGE }

export const E_UNREADABLE_PAYLOAD = createError<[problem: string]>(
  'Cannot read a stored payload: %s. It was written by another program or a later version of this package. Run the ' +
    'version that wrote it, or restore the row',
  'E_UNREADABLE_PAYLOAD'
)

/* ---------- runs ---------- */

export const E_RUN_NOT_FOUND = createError<[runId: string]>(
  'There is no run "%s". Check the id and the database; a run that was started in a transaction exists once it commits',
  'E_RUN_NOT_FOUND',
  404
)

export const E_RUN_ID_TAKEN = createError<[runId: string, existing: string, requested: string]>(
  'The run id "%s" belongs to a run of workflow "%s", so a run of "%s" cannot have it. Choose another id',
  'E_RUN_ID_TAKEN',
  409
)

/** The part of an HTTP context that an error needs to answer a request. */
interface AnswersRequest {
  response: { status(code: number): { send(body: unknown): void } }
}

/** What is said of a run by its status; of others, that it is so. */
const ENDED: Readonly<Record<string, string>> = { failed: 'has failed', cancelled: 'was cancelled' }

/** A run that a caller waited for did not complete. */
class RunFailedError extends Error {
  static readonly code = 'E_RUN_FAILED'

  /**
   * The code that the run failed with, so that guards such as `InvalidLine.is(error)` match; `E_RUN_FAILED` if the
   * failure had none. To tell this class from others, use `instanceof`.
   */
  readonly code: string
  readonly runId: string
  /** The status of the run, such as `failed`, `dead` or `blocked`. */
  readonly status: string
  readonly details: unknown

  constructor(failure: {
    runId: string
    status: string
    message: string
    code?: string | undefined
    details?: unknown
  }) {
    const { runId, status, message, code } = failure
    // The code of a cancelled run says no more than its status.
    const shownCode = code === undefined || code === status ? '' : ` (${code})`
    super(`Run "${runId}" ${ENDED[status] ?? `is ${status}`}${shownCode}: ${message}`)
    this.name = 'RunFailedError'
    this.code = failure.code ?? RunFailedError.code
    this.runId = failure.runId
    this.status = failure.status
    this.details = failure.details
  }

  /** Answers the request that nobody caught it in: the framework would take `status` for an HTTP status. */
  handle(error: RunFailedError, ctx: AnswersRequest): void {
    ctx.response.status(500).send({ errors: [{ message: error.message, code: error.code }] })
  }
}

export { RunFailedError as E_RUN_FAILED }

export const E_WAIT_TIMEOUT = createError<[runId: string, timeoutMs: number, status: string]>(
  'Run "%s" has not ended within %d ms: it is %s. The run goes on; wait again, or pass a longer "timeoutMs"',
  'E_WAIT_TIMEOUT',
  504
)

export const E_WAIT_IN_TRANSACTION = createError<[workflow: string]>(
  'Cannot wait for a run of "%s" that is started inside a transaction: it exists for others only after the commit. ' +
    'Use dispatch() or engine.start(), and wait for the result after the commit',
  'E_WAIT_IN_TRANSACTION'
)

export const E_NO_WORKER = createError<[runId: string, needs: string]>(
  'Run "%s" waits for a worker that knows %s, and no live worker does. Start "node ace durable:work", or set ' +
    '"worker: { embedded: true }" in config/durable.ts',
  'E_NO_WORKER'
)

/* ---------- workflows ---------- */

export const E_UNKNOWN_WORKFLOW = createError<[workflow: string, hint: string]>(
  'Unknown workflow "%s". %s',
  'E_UNKNOWN_WORKFLOW'
)

export const E_WORKFLOW_ALREADY_REGISTERED = createError<
  [workflow: string, version: string, where: string]
>(
  'Workflow "%s" version "%s" is registered already, by %s. Rename one, or give it another version',
  'E_WORKFLOW_ALREADY_REGISTERED'
)

export const E_INVALID_WORKFLOW = createError<[workflow: string, problem: string]>(
  'Invalid workflow "%s": %s',
  'E_INVALID_WORKFLOW'
)

export const E_UNRESOLVABLE_WORKFLOW = createError<[workflow: string, problem: string]>(
  'The container cannot make workflow "%s": %s. A run has no HTTP request: inject what does not need one, and pass ' +
    'the rest in the input',
  'E_UNRESOLVABLE_WORKFLOW'
)

export const E_CIRCULAR_WORKFLOW_IMPORT = createError<[first: string, second: string]>(
  'The workflow files %s and %s import each other, and one uses the class of the other before it is there. In one of ' +
    'them leave the import out and name the workflow: ctx.child(), ctx.startChild() and ctx.all() take its name or ' +
    "workflowRef(name), and onError, deadLetterWorkflow and engine.start() also a function: () => import('#workflows/...')",
  'E_CIRCULAR_WORKFLOW_IMPORT'
)

export const E_DISCOVERY_FAILED = createError<[file: string, problem: string]>(
  'Cannot load %s: %s. Files of workflows and steps are imported when a worker starts or a workflow is first named',
  'E_DISCOVERY_FAILED'
)

export const E_NO_ENGINE = createError<[call: string]>(
  '%s was called where no AdonisJS application with the durable provider has been booted. Add ' +
    '"@adonis-agora/durable/durable_provider" to the providers in adonisrc.ts, and call it once the application has ' +
    'been booted',
  'E_NO_ENGINE'
)

/* ---------- steps ---------- */

export const E_INVALID_STEP = createError<[step: string, problem: string]>(
  'Invalid step "%s": %s',
  'E_INVALID_STEP'
)

export const E_NOT_A_STEP = createError<[found: string]>(
  'ctx.step() was given %s, which is not a step. Decorate the method with @Step(), make the function with ' +
    'defineStep(), or run it with ctx.localStep(name, fn). A bound or wrapped function is another function: pass the ' +
    'step itself',
  'E_NOT_A_STEP'
)

export const E_DUPLICATE_STEP = createError<[step: string, first: string, second: string]>(
  'The step "%s" is defined twice: in %s and in %s. Rename one',
  'E_DUPLICATE_STEP'
)

export const E_UNKNOWN_STEP = createError<[step: string, hint: string]>(
  'Unknown step "%s". %s',
  'E_UNKNOWN_STEP'
)

/* ---------- what a body may not do ---------- */

export const E_STEP_CALLED_DIRECTLY = createError<[step: string]>(
  'The step "%s" was called directly inside a workflow body, where it would run again at every replay. Use ' +
    'ctx.step(theStep, input)',
  'E_STEP_CALLED_DIRECTLY'
)

export const E_NESTED_OPERATION = createError<[operation: string, step: string]>(
  '%s was called inside the step "%s". A step is one recorded unit: call it from the workflow body, or make the ' +
    'step return what the body needs',
  'E_NESTED_OPERATION'
)

export const E_FOREIGN_AWAIT = createError<[what: string]>(
  'The body %s. Put timers, queries, other I/O and dynamic imports into ctx.localStep() or ctx.step(), and await only ' +
    'those',
  'E_FOREIGN_AWAIT'
)

export const E_NON_DETERMINISM = createError<[seq: number, asked: string, recorded: string]>(
  'The history does not fit the code at position %d: the code asked for %s, and the history has %s. Roll the change ' +
    'back, or give the changed code a new version and keep the old one for the runs in flight',
  'E_NON_DETERMINISM'
)

export const E_START_IN_BODY = createError<[workflow: string]>(
  'A run of "%s" was started by the engine inside a workflow body, which would start it again at every replay. Use ' +
    'ctx.startChild() or ctx.child()',
  'E_START_IN_BODY'
)

export const E_START_OPTION_IN_BODY = createError<[call: string, option: string]>(
  '%s inside a workflow body takes no other option than "runId", and was given "%s": the run becomes a child of the ' +
    'one that starts it',
  'E_START_OPTION_IN_BODY'
)

export const E_RESULT_IN_BODY = createError<[runId: string]>(
  'result() of run "%s" was called inside a workflow body, whose handles hold nothing but the run id. To wait for the ' +
    'output, start the run with ctx.child() or the start() of its class',
  'E_RESULT_IN_BODY'
)

/* ---------- store and engine ---------- */

export const E_STORE_BUSY = createError<[waitedMs: number]>(
  'The database refused to write for %d ms because something else holds it. Pass a start the transaction that it is ' +
    'made in: { client: trx }. Make other calls after the commit',
  'E_STORE_BUSY',
  503
)

export const E_SIGNAL_IN_DOUBT = createError<[id: string, token: string]>(
  'The connection to the database was lost while signal "%s" to "%s" was being stored. It may have been delivered: it ' +
    'is not stored now, so it was taken, or never came. Look for what it was to cause before you send it again',
  'E_SIGNAL_IN_DOUBT',
  503
)

export const E_TOO_MANY_WRITES = createError<[waiting: number]>(
  'The database is slower than what is asked of it: %d writes of this process are waiting. Start fewer runs at once, ' +
    'and wait until those are stored before you start more',
  'E_TOO_MANY_WRITES',
  503
)

export const E_SCHEMA_MISSING = createError<[connection: string]>(
  'The tables of durable are missing on connection "%s". Run "node ace migration:run". If the application has no ' +
    'migration of them, publish it first with "node ace durable:migration"',
  'E_SCHEMA_MISSING'
)

export const E_SCHEMA_BEHIND = createError<[connection: string, found: number, needed: number]>(
  'The tables of durable on connection "%s" have version %d, and this package needs %d. Run ' +
    '"node ace durable:migration" and "node ace migration:run"',
  'E_SCHEMA_BEHIND'
)

export const E_WORKER_NAME_TAKEN = createError<[name: string]>(
  'A live worker is named "%s" already. Give each process its own name, or none: --name, or worker.name in ' +
    'config/durable.ts',
  'E_WORKER_NAME_TAKEN'
)

export const E_STORE_NOT_TRANSACTIONAL = createError(
  'The store in use cannot take part in a Lucid transaction. Leave "client" out, or use stores.lucid() in ' +
    'config/durable.ts',
  'E_STORE_NOT_TRANSACTIONAL'
)

export const E_ENGINE_STOPPED = createError(
  'The durable engine has been stopped. Nothing can be started on it any more',
  'E_ENGINE_STOPPED'
)

export const E_INTERNAL = createError<[what: string]>(
  'A fault in durable itself: %s. Please report it with this stack and the version of the package',
  'E_INTERNAL'
)

/* ---------- failures ---------- */

/** What can be read of an error after one of the guards (`InvalidLine.is(error)`) has matched it. */
export interface MatchedFailure<Details = unknown> {
  readonly name: string
  readonly message: string
  readonly code: string | undefined
  readonly details: Details
}

/** A class of failures, as its guard sees it. */
interface FailureClass<Failure extends FatalError> {
  new (...args: any[]): Failure
  readonly code: string
}

function propertyOf(error: unknown, key: 'code' | 'retryable'): unknown {
  return typeof error === 'object' && error !== null && key in error
    ? Reflect.get(error, key)
    : undefined
}

/**
 * A failure that no further attempt would change: it is not retried, and it is what failure routes match by code.
 * Subclasses declare a static `code` and pass it on.
 *
 * @template Details what a subclass passes as `details`, so that its guard knows it too:
 * `class InvalidLine extends FatalError<LineIssue[]>`. Plain data: it is stored and read back.
 */
export class FatalError<Details = unknown> extends Error {
  static readonly code: string = 'fatal_error'

  /** What routes and guards match. Undefined when none was given and the class declares none of its own. */
  readonly code: string | undefined
  /** Recorded with the failure: any value that can be stored. A subclass that gives it a type always passes it. */
  readonly details: Details
  readonly retryable = false as const

  constructor(message: string, code?: string, details?: Details) {
    super(message)
    this.name = new.target.name
    this.code = code ?? (new.target.code === FatalError.code ? undefined : new.target.code)
    this.details = details as Details
  }

  /**
   * Whether `error` is a failure of this class, also after it came back from the store as a `StepError` or
   * `ChildError`: compares the code, never the class. `FatalError.is` itself matches everything that is not retried.
   */
  static is<Failure extends FatalError>(
    this: FailureClass<Failure>,
    error: unknown
  ): error is MatchedFailure<Failure['details']> {
    if (this.code === FatalError.code) {
      return Object.is(this, FatalError)
        ? propertyOf(error, 'retryable') === false
        : error instanceof this
    }
    return propertyOf(error, 'code') === this.code
  }
}

/**
 * A value does not fit its schema: `invalid_input` (of a step or a workflow), `invalid_output` (of a step), else
 * `schema_validation`. The issues are its `details`.
 */
export class SchemaValidationError extends FatalError {
  static override readonly code = 'schema_validation'

  /** Matches all three codes. */
  static override is(error: unknown): error is MatchedFailure {
    const code = propertyOf(error, 'code')
    return code === 'schema_validation' || code === 'invalid_input' || code === 'invalid_output'
  }
}

/** A recorded failure, as far as what a body catches is made of it. */
export interface RecordedFailure {
  name: string
  message: string
  code?: string | undefined
  details?: unknown
  stack?: string | undefined
  retryable?: boolean | undefined
  runId?: string | undefined
  cause?: RecordedFailure | undefined
}

/**
 * The class of the causes of what a body catches, and the parent of what it catches: made of a record alone, so that it
 * shows nothing of this process.
 */
export class RecordedError extends Error {
  readonly code: string | undefined
  readonly details: unknown
  /** False when the failure was a `FatalError`; undefined when the thrown error did not say. */
  readonly retryable: boolean | undefined
  /** The child run whose failure it is; undefined when it is not one of a child. */
  readonly runId: string | undefined

  constructor(failure: RecordedFailure) {
    const { name, message, code, details, stack, retryable, runId, cause } = failure
    super(message, cause && { cause: new RecordedError(cause) })
    this.name = name
    this.code = code
    this.details = details
    this.retryable = retryable
    this.runId = runId
    this.stack = stack ?? `${name}: ${message}`
  }
}

/**
 * What a body catches of a failed operation: made of the record, so that it is the same on the first execution and
 * on every replay. The class of the thrown error does not survive; its name, code, details and causes do.
 */
abstract class OperationError extends RecordedError {
  /** How many attempts were made. */
  readonly attempts: number

  constructor(failure: RecordedFailure, attempts: number) {
    super(failure)
    this.attempts = attempts
  }
}

/** A step has failed for good: its attempts are spent, or trying again would not help. */
export class StepError extends OperationError {}

/** No signal came in time: the wait's `timeout` has passed. Its code is `signal_timeout`. */
export class SignalTimeoutError extends OperationError {}

/**
 * A child run did not complete, or could not be started. `code` is the child's own, so that the parent's routes match it,
 * `child_failed` where it has none, or `run_id_taken`.
 */
export class ChildError extends OperationError {
  /** The child; of `run_id_taken` the other run, which has its id. */
  declare readonly runId: string
  readonly status: 'failed' | 'cancelled' | 'dead'

  constructor(
    failure: RecordedFailure,
    child: { runId: string; status: 'failed' | 'cancelled' | 'dead'; attempts: number }
  ) {
    super({ ...failure, runId: child.runId }, child.attempts)
    this.status = child.status
  }
}

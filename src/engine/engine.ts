import { randomUUID } from 'node:crypto'
import type { RunQuery, StrandedRun, WorkerRow } from '../contracts/store.ts'
import { checkOptions, type KeysOf } from '../core/known_options.ts'
import { checkName, MAX_NAME_LENGTH } from '../core/name.ts'
import { encode } from '../core/payload.ts'
import { the } from '../core/present.ts'
import { suspectFrom } from '../core/recovery.ts'
import { E_ENGINE_STOPPED, E_RUN_NOT_FOUND, E_START_IN_BODY } from '../errors.ts'
import type { WorkflowCtx } from '../types/context.ts'
import type {
  LazyWorkflowTarget,
  RegisterOptions,
  RunHandle,
  StartOptions,
  WorkflowClass,
  WorkflowRef,
} from '../types/workflow.ts'
import { callerFile } from './call_site.ts'
import {
  contextOf,
  type EngineContext,
  type EngineDependencies,
  type EngineStore,
} from './engine_context.ts'
import type { RunEventName, RunEvents } from './events.ts'
import {
  type CancelOptions,
  checkCancelOptions,
  checkWaitOptions,
  givenRunId,
  type WaitOptions,
} from './facade_options.ts'
import { Requeue } from './requeue.ts'
import { describeHistory, type RunHistory } from './run_history.ts'
import { checkRunQuery, RUN_QUERY } from './run_query.ts'
import { RunReader } from './run_reader.ts'
import { RunStarter } from './run_starter.ts'
import { RunWaiter } from './run_waiter.ts'
import { currentScope } from './scope.ts'
import { adoptDeclaredSteps } from './step_declarations.ts'
import { type UnservedRoute, unservedRoutes } from './unserved_routes.ts'
import { functionDefinition } from './workflow_function.ts'
import { describeRun, type RunPage, summaryOf, type WorkflowRun } from './workflow_run.ts'
import { shownTarget } from './workflow_target.ts'

const START_OPTIONS: KeysOf<StartOptions> = {
  runId: true,
  client: true,
  tags: true,
  namespace: true,
  priority: true,
}

/** How long a stop waits for writes while the database does not answer. */
const CLOSE_GRACE_MS = 5_000

const contexts = new WeakMap<WorkflowEngine, EngineContext>()

/** What an engine shares with the workers of its process, and with no application. */
export function internalsOf(engine: WorkflowEngine): EngineContext {
  return the(contexts.get(engine), 'the context of an engine')
}

/** What commands read of an engine, and no application does. */
export function readerOf(engine: WorkflowEngine): RunReader {
  return new RunReader(() => internalsOf(engine).store())
}

/** The facade: starts runs, sends to them, waits for them and reads them. Making one opens nothing. */
export class WorkflowEngine {
  #deps: EngineDependencies
  #context: EngineContext
  #starter: RunStarter
  #waiter: RunWaiter
  #store: Promise<EngineStore> | null = null
  #stopWatching: () => void = () => {}
  #stopAdopting: () => void
  #isStopped = false

  constructor(deps: EngineDependencies) {
    this.#deps = deps
    this.#context = contextOf(deps, () => this.#open())
    this.#starter = new RunStarter(this.#context)
    this.#waiter = new RunWaiter(this.#context)
    this.#stopAdopting = adoptDeclaredSteps(deps)
    contexts.set(this, this.#context)
  }

  /**
   * Registers a workflow written as a function. Returns the ref that names it. The same function again changes nothing;
   * another one under a known name and version is refused with E_WORKFLOW_ALREADY_REGISTERED, but in development
   * replaces one of the same file, as hot reload needs. Throws E_INVALID_NAME, E_INVALID_SCHEMA, E_UNKNOWN_OPTION,
   * E_INVALID_OPTION.
   */
  register<I = unknown, O = unknown>(
    name: string,
    version: string,
    fn: (ctx: WorkflowCtx, input: I) => O | Promise<O>,
    options: RegisterOptions<I> = {}
  ): WorkflowRef<I, Awaited<O>> {
    const registeredIn = callerFile()
    const { registry, inDevelopment } = this.#deps
    const before = registry.workflow(name, version)?.registeredIn ?? null
    const { origin } = this.#deps.options
    registry.registerWorkflow(
      functionDefinition({ name, version, fn, options, origin, registeredIn }),
      { replace: inDevelopment && before !== null && before === registeredIn }
    )
    return { name, version }
  }

  /**
   * Stores a run, and resolves once it is stored. The same workflow under an existing id is that run. With `client`, a
   * Lucid transaction, the run exists if and only if it commits.
   *
   * @param runIdOrOptions the run id, or options; a run id goes before one in `options`
   * @throws E_RUN_ID_TAKEN when a run of another workflow has the id; E_UNKNOWN_WORKFLOW, E_UNKNOWN_OPTION,
   * E_INVALID_OPTION, E_INVALID_NAME, E_INVALID_PRIORITY, E_UNSERIALIZABLE or E_PAYLOAD_TOO_LARGE for the arguments;
   * E_START_IN_BODY inside a workflow body; E_STORE_BUSY when the database takes no write; E_STORE_NOT_TRANSACTIONAL for
   * a `client` that the store cannot use; E_ENGINE_STOPPED
   */
  start<I, O>(
    workflow: WorkflowClass<I, O> | WorkflowRef<I, O>,
    input: I,
    runIdOrOptions?: string | StartOptions,
    options?: StartOptions
  ): Promise<RunHandle<O>>
  start<O = unknown>(
    workflow: LazyWorkflowTarget,
    input?: unknown,
    runIdOrOptions?: string | StartOptions,
    options?: StartOptions
  ): Promise<RunHandle<O>>
  async start(
    workflow: LazyWorkflowTarget,
    input?: unknown,
    runIdOrOptions?: string | StartOptions,
    more: StartOptions = {}
  ): Promise<RunHandle<any>> {
    const options =
      typeof runIdOrOptions === 'string' ? { runId: runIdOrOptions } : (runIdOrOptions ?? {})
    for (const given of [options, more]) checkOptions('engine.start()', given, START_OPTIONS)
    const scope = currentScope()
    if (scope?.kind === 'body') throw new E_START_IN_BODY([shownTarget(workflow)])
    this.#refuseWhenStopped()
    return this.#handle(await this.#starter.start(workflow, input, { ...more, ...options }))
  }

  /**
   * Sends a signal to whoever waits for `token`; without one it is kept. `id` makes repeated sending harmless while
   * the signal has not been taken.
   *
   * @throws E_INVALID_NAME, E_UNSERIALIZABLE, E_PAYLOAD_TOO_LARGE, E_UNKNOWN_OPTION or E_INVALID_OPTION for the
   * arguments; E_STORE_BUSY when the database takes no write; E_SIGNAL_IN_DOUBT when the connection was lost and the
   * signal may have been delivered; E_ENGINE_STOPPED
   */
  async signal(
    token: string,
    payload?: unknown,
    options: { id?: string } = {}
  ): Promise<{ delivered: boolean }> {
    this.#refuseWhenStopped()
    checkOptions('engine.signal()', options, { id: true })
    const { maxPayloadBytes } = this.#deps.options
    const text = encode(payload, {
      label: 'payload',
      of: `signal "${token}"`,
      maxBytes: maxPayloadBytes,
    })
    const id = options.id === undefined ? randomUUID() : checkName('signal id', options.id)
    const signal = { id, token: checkName('signal token', token), payload: text }
    const answer = await this.#context.commits.write({ type: 'signal', signal })
    return { delivered: answer.delivered }
  }

  /**
   * Cancels a run, whoever executes it, with the children it awaits. With `compensate` it undoes its steps first.
   * Resolves to false when it had ended, and to true else, also when it was undoing its steps already.
   *
   * @throws E_RUN_NOT_FOUND, E_INVALID_NAME, E_UNKNOWN_OPTION, E_INVALID_OPTION; E_STORE_BUSY when the database takes
   * no write; E_ENGINE_STOPPED
   */
  async cancel(runId: string, options: CancelOptions = {}): Promise<boolean> {
    this.#refuseWhenStopped()
    checkCancelOptions(options)
    const { compensate = false, reason = 'The run was cancelled' } = options
    const id = givenRunId(runId)
    const outcome = await this.#context.cancellation.cancel(id, { compensate, reason })
    if (outcome === 'unknown') throw new E_RUN_NOT_FOUND([runId])
    return outcome !== 'over'
  }

  /**
   * Runs a failed or dead run again, keeping the steps that its failure could not have influenced, with its whole
   * budget of recoveries. A live run that waits is only made due. Resolves to false where nothing is to be done;
   * throws E_RUN_NOT_FOUND, and E_INVALID_NAME for what is no id.
   */
  async requeue(runId: string): Promise<boolean> {
    this.#refuseWhenStopped()
    const id = givenRunId(runId)
    const store = await this.#open()
    const { commits, registry, discover } = this.#context
    return new Requeue({ store, commits, registry, discover }).run(id)
  }

  /**
   * Starts a new run of the same workflow with other input, with the tags (but `onError:...`), the namespace and the
   * priority of the original, which stays as it is. Default id: `<runId>~retry~<8 hex characters>`, a long id cut short.
   * Null: there is no run to retry. Throws what `start` throws.
   */
  async retryWithInput(
    runId: string,
    input: unknown,
    newRunId?: string
  ): Promise<{ runId: string } | null> {
    const original = await this.getRun(runId)
    if (!original) return null
    const suffix = `~retry~${randomUUID().slice(0, 8)}`
    const id = newRunId ?? runId.slice(0, MAX_NAME_LENGTH - suffix.length) + suffix
    const { workflow, version, namespace, priority } = original
    const tags = original.tags.filter((tag) => !tag.startsWith('onError:'))
    const started = await this.start({ name: workflow, version }, input, id, {
      namespace,
      tags,
      priority,
    })
    return { runId: started.runId }
  }

  /**
   * Calls `listener` with each run that this process dead-letters, before the run's handler starts, until the returned
   * function is called. It is not awaited; what it throws or rejects with is logged at `debug`.
   */
  onDead(listener: (run: WorkflowRun) => unknown): () => void {
    return this.#context.deadLetters.onDead(listener)
  }

  /**
   * One pass of recovery, as every worker makes it again and again: the runs of processes whose lease has expired become
   * due, and count a recovery when a worker takes them up. So do those of a process of which nothing is known any more,
   * without being counted. Resolves to how many processes and runs were found lost.
   * A worker waits until its own connection has been healthy for `leaseMs`; a caller of this decides that for itself.
   */
  async recoverIncomplete(): Promise<{ workers: number; runs: number }> {
    const store = await this.#open()
    const cap = this.#deps.options.maxRecoveryAttempts
    const found = await store.recoverExpired({ suspectFrom: suspectFrom(cap) })
    if (found.runs > 0) this.#context.news.anything()
    return found
  }

  /** Failure routes whose handler is neither registered here nor served by a live worker. */
  async unservedOnErrorRoutes(): Promise<UnservedRoute[]> {
    return unservedRoutes(this.#context)
  }

  /**
   * By id, or by the handle that `start` gave, which knows the type of the output. Null: there is no such run. Throws
   * E_INVALID_NAME for what is no id.
   */
  async getRun<Output = any>(run: string | RunHandle<Output>): Promise<WorkflowRun<Output> | null> {
    const id = givenRunId(run)
    const store = await this.#open()
    const stored = await store.getRun(id)
    return stored && describeRun(stored)
  }

  /**
   * Newest first, without payloads; `next` of a page is `after` of the following one.
   *
   * @throws E_INVALID_OPTION for a value that an option does not take, E_INVALID_CURSOR for an `after` that is none,
   * E_UNKNOWN_OPTION
   */
  async listRuns(query: RunQuery = {}): Promise<RunPage> {
    checkOptions('engine.listRuns()', query, RUN_QUERY)
    checkRunQuery(query)
    const store = await this.#open()
    const { runs, next } = await store.listRuns(query)
    return { runs: runs.map(summaryOf), next }
  }

  /**
   * Recorded operations of every generation, and what the run waits for. Null: there is no such run. Throws
   * E_INVALID_NAME for what is no id.
   */
  async getHistory(runId: string): Promise<RunHistory | null> {
    const id = givenRunId(runId)
    const store = await this.#open()
    const stored = await store.getHistory(id)
    return stored && describeHistory(stored)
  }

  /**
   * Resolves to the run when it has ended, however it did, and in development when it is blocked; rejects with
   * E_WAIT_TIMEOUT after `timeoutMs`. Without `timeoutMs` it waits as long as the run takes.
   *
   * @throws E_RUN_NOT_FOUND, E_INVALID_NAME, E_UNKNOWN_OPTION, E_INVALID_OPTION; in development E_NO_WORKER;
   * E_ENGINE_STOPPED
   */
  async waitForRun<Output = any>(
    run: string | RunHandle<Output>,
    options: WaitOptions = {}
  ): Promise<WorkflowRun<Output>> {
    checkWaitOptions('engine.waitForRun()', options)
    return this.#waiter.wait(givenRunId(run), options.timeoutMs)
  }

  /**
   * Live runs that nothing will wake: none, unless something is broken. Of bodies that have stalled, which only the
   * process that executes them knows, those of this process.
   */
  async findStranded(): Promise<StrandedRun[]> {
    const store = await this.#open()
    const found = await store.findStranded()
    const stalled = [...this.#context.stalled].map((runId) => ({
      runId,
      reason: 'stalled' as const,
    }))
    return [...found, ...stalled]
  }

  /** The workers of every process on this database, those that were lost a short time ago included. */
  async listWorkers(): Promise<WorkerRow[]> {
    const store = await this.#open()
    return store.listWorkers()
  }

  /** Calls `listener` at each such event of this process, until the returned function is called. */
  on<Name extends RunEventName>(
    name: Name,
    listener: (event: RunEvents[Name]) => void
  ): () => void {
    return this.#context.events.on(name, listener)
  }

  /** Moves the clock of the store by `ms`, for every process on it. For tests. */
  async advanceClock(ms: number): Promise<void> {
    const store = await this.#open()
    await store.advanceClock(ms)
    this.#context.news.anything()
  }

  /** Lets writes under way end and closes the store. Workers are stopped before. Idempotent. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.#stopAdopting()
    this.#waiter.stop()
    await this.#context.dispatcher?.close()
    await this.#context.commits.close(CLOSE_GRACE_MS)
    this.#stopWatching()
    const store = await this.#store?.catch(() => null)
    await store?.close()
  }

  #refuseWhenStopped(): void {
    if (this.#isStopped) throw new E_ENGINE_STOPPED()
  }

  /** A failed opening is tried again at the next use. */
  #open(): Promise<EngineStore> {
    if (this.#isStopped && !this.#store) return Promise.reject(new E_ENGINE_STOPPED())
    this.#store ??= this.#openStore().catch((error) => {
      this.#store = null
      throw error
    })
    return this.#store
  }

  async #openTransport(store: EngineStore): Promise<void> {
    try {
      await this.#context.dispatcher?.open()
    } catch (error) {
      await store.close()
      throw error
    }
  }

  async #openStore(): Promise<EngineStore> {
    const store = await this.#deps.openStore()
    await store.open()
    await this.#openTransport(store)
    const { news } = this.#context
    this.#stopWatching = store.onForeignChange((told) =>
      told ? news.publish(told, new Map()) : news.anything()
    )
    return store
  }

  #handle(runId: string): RunHandle<any> {
    return {
      runId,
      result: async (options = {}) => {
        checkWaitOptions('result()', options)
        return this.#waiter.result(runId, options.timeoutMs)
      },
    }
  }
}

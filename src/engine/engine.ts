import { randomUUID } from 'node:crypto'
import type {
  ChildState,
  RunPage,
  RunQuery,
  Store,
  StrandedRun,
  TransactionalStore,
  WorkerRow,
} from '../contracts/store.ts'
import type { HistoryRecord, Wait } from '../core/history.ts'
import { checkName, claimKey } from '../core/name.ts'
import { encode } from '../core/payload.ts'
import { DEFAULT_PRIORITY, type NewRun, type RunRow } from '../core/run.ts'
import {
  E_ENGINE_STOPPED,
  E_RUN_ID_TAKEN,
  E_START_IN_BODY,
  E_STORE_NOT_TRANSACTIONAL,
  E_UNKNOWN_WORKFLOW,
} from '../errors.ts'
import { nearestName } from '../nearest_name.ts'
import type { ResolvedOptions } from '../options.ts'
import type { WorkflowCtx } from '../types/context.ts'
import type { RunLogger } from '../types/step.ts'
import type {
  LazyWorkflowTarget,
  RegisterOptions,
  RunHandle,
  StartOptions,
  WorkflowClass,
  WorkflowRef,
} from '../types/workflow.ts'
import { callerFile } from './call_site.ts'
import { CommitQueue } from './commit_queue.ts'
import type { EngineContext } from './engine_context.ts'
import { type RunEventName, RunEventEmitter, type RunEvents } from './events.ts'
import { nameWorkflowNow } from './naming.ts'
import { RunNews } from './news.ts'
import type { Registry } from './registry.ts'
import { newRunId } from './run_id.ts'
import { RunWaiter } from './run_waiter.ts'
import { checkSchema } from './schema.ts'
import { currentScope } from './scope.ts'
import { adoptDeclaredSteps, type InstanceMaker } from './step_declarations.ts'
import { stepNameOf } from './step_stamp.ts'
import { describeRun, type WorkflowRun } from './workflow_run.ts'
import { resolveWorkflowTarget, shownTarget, type TargetEnvironment } from './workflow_target.ts'

/** A store that may take part in the application's transactions. */
export type EngineStore = Store & Partial<TransactionalStore<unknown>>

export interface EngineDependencies {
  registry: Registry
  /** Makes the store; called once, before the first use. */
  openStore: () => Promise<EngineStore>
  /** Looks for workflow and step files; called when a worker starts and when a name is unknown. */
  discover: () => Promise<void>
  /** Makes the instances of workflows and steps: the container. */
  maker: InstanceMaker
  options: ResolvedOptions
  logger: RunLogger
  inDevelopment: boolean
}

/** The facade: starts runs, sends to them, waits for them and reads them. Making one opens nothing. */
export class WorkflowEngine {
  /** What workers of this process share with the engine. Not for applications. */
  readonly context: EngineContext
  #environment: TargetEnvironment
  #waiter: RunWaiter
  #store: Promise<EngineStore> | null = null
  #stopWatching: () => void = () => {}
  #stopAdopting: () => void
  #isStopped = false
  #deps: EngineDependencies

  constructor(deps: EngineDependencies) {
    this.#deps = deps
    const { registry, logger, options, maker, inDevelopment } = deps
    const news = new RunNews()
    const store = () => this.#open()
    this.#environment = { registry, maker, logger, origin: options.origin, inDevelopment }
    this.#stopAdopting = adoptDeclaredSteps(registry, maker)
    const onError = (err: unknown) => logger.error({ err }, 'A listener of run events has failed')
    this.context = {
      store,
      discover: deps.discover,
      commits: new CommitQueue({ store, news }),
      news,
      events: new RunEventEmitter(onError),
      registry,
      options,
      log: logger,
      naming: {
        stepName: (step) => stepNameOf(step as string),
        workflow: (target) => nameWorkflowNow(target, this.#environment),
      },
      inDevelopment,
      starter: null,
    }
    this.#waiter = new RunWaiter(this.context)
  }

  /**
   * Registers a workflow written as a function. Returns the ref that names it. The same function again changes nothing;
   * another one under a known name and version is refused with E_WORKFLOW_ALREADY_REGISTERED, but in development
   * replaces one of the same file, as hot reload needs. Throws E_INVALID_NAME, E_INVALID_SCHEMA.
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
    registry.registerWorkflow(
      {
        name,
        version,
        writtenAs: 'function',
        origin: this.#deps.options.origin,
        tags: [],
        input: checkSchema(options.input, `"input" of workflow "${name}"`),
        file: null,
        registeredIn,
        source: fn,
        createBody: async () => fn as (ctx: WorkflowCtx, input: unknown) => unknown,
      },
      { replace: inDevelopment && before !== null && before === registeredIn }
    )
    return { name, version }
  }

  /**
   * Stores a run, and resolves once it is stored. The same workflow under an existing id is that run; another one is
   * refused with E_RUN_ID_TAKEN. With `client`, a Lucid transaction, the run exists if and only if it commits.
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
    more?: StartOptions
  ): Promise<RunHandle<any>> {
    const options =
      typeof runIdOrOptions === 'string'
        ? { ...more, runId: runIdOrOptions }
        : (runIdOrOptions ?? more ?? {})
    const scope = currentScope()
    if (scope?.kind === 'body') throw new E_START_IN_BODY([shownTarget(workflow)])
    const run = await this.#newRun(workflow, input, options)
    const stored = options.client
      ? await this.#startIn(options.client, run)
      : await this.#startHere(run)
    if (stored.workflow !== run.workflow)
      throw new E_RUN_ID_TAKEN([run.id, stored.workflow, run.workflow])
    return this.#handle(run.id)
  }

  /**
   * Sends a signal to whoever waits for `token`; without one it is kept. `id` makes repeated sending harmless while
   * the signal has not been taken.
   */
  async signal(
    token: string,
    payload?: unknown,
    options: { id?: string } = {}
  ): Promise<{ delivered: boolean }> {
    this.#refuseWhenStopped()
    const { maxPayloadBytes } = this.#deps.options
    const text = encode(payload, { label: 'payload of the signal', maxBytes: maxPayloadBytes })
    const id = options.id === undefined ? randomUUID() : checkName('signal id', options.id)
    const signal = { id, token: checkName('signal token', token), payload: text }
    const answer = await this.context.commits.write({ type: 'signal', signal })
    if (answer.type === 'refused') throw answer.error
    return { delivered: answer.type === 'signalled' && answer.delivered }
  }

  /** By id, or by the handle that `start` gave, which knows the type of the output. Null: there is no such run. */
  async getRun<Output = any>(run: string | RunHandle<Output>): Promise<WorkflowRun<Output> | null> {
    const store = await this.#open()
    const stored = await store.getRun(idOf(run))
    return stored && describeRun(stored)
  }

  /** Newest first, without payloads; `next` of a page is `after` of the following one. */
  async listRuns(query: RunQuery = {}): Promise<RunPage> {
    const store = await this.#open()
    return store.listRuns(query)
  }

  /** Recorded operations of every generation, and what the run waits for. Null: there is no such run. */
  async getHistory(runId: string): Promise<{ records: HistoryRecord[]; waits: Wait[] } | null> {
    const store = await this.#open()
    return store.getHistory(runId)
  }

  /** Indexes of the children that an operation has started, and where each stands, without payloads. */
  async childStates(parent: { runId: string; seq: number }): Promise<ChildState[]> {
    const store = await this.#open()
    return store.childStates(parent)
  }

  /** Resolves when the run has ended, however; rejects with E_RUN_NOT_FOUND, or E_WAIT_TIMEOUT after `timeoutMs`. */
  waitForRun<Output = any>(
    run: string | RunHandle<Output>,
    options: { timeoutMs?: number | undefined } = {}
  ): Promise<WorkflowRun<Output>> {
    return this.#waiter.wait(idOf(run), options.timeoutMs)
  }

  /** Live runs that nothing will wake: none, unless something is broken. */
  async findStranded(): Promise<StrandedRun[]> {
    const store = await this.#open()
    return store.findStranded()
  }

  async listWorkers(): Promise<WorkerRow[]> {
    const store = await this.#open()
    return store.listWorkers()
  }

  /** Calls `listener` at each such event of this process, until the returned function is called. */
  on<Name extends RunEventName>(
    name: Name,
    listener: (event: RunEvents[Name]) => void
  ): () => void {
    return this.context.events.on(name, listener)
  }

  /** Moves the clock of the store by `ms`, for every process on it. For tests. */
  async advanceClock(ms: number): Promise<void> {
    const store = await this.#open()
    await store.advanceClock(ms)
    this.context.news.anything()
  }

  /** Lets writes under way end and closes the store. Workers are stopped before. Idempotent. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.#stopAdopting()
    this.#waiter.stop()
    await this.context.commits.idle()
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

  async #openStore(): Promise<EngineStore> {
    const store = await this.#deps.openStore()
    await store.open()
    this.#stopWatching = store.onForeignChange(() => this.context.news.anything())
    return store
  }

  async #newRun(
    workflow: LazyWorkflowTarget,
    input: unknown,
    options: StartOptions
  ): Promise<NewRun> {
    this.#refuseWhenStopped()
    const named = await this.#named(workflow)
    const { namespace = 'default', priority = DEFAULT_PRIORITY, tags = [] } = options
    checkName('namespace', namespace)
    const { maxPayloadBytes } = this.#deps.options
    return {
      id: options.runId === undefined ? newRunId() : checkName('run id', options.runId),
      workflow: named.name,
      version: named.version,
      claimKey: claimKey(namespace, named.name, named.version),
      namespace,
      origin: named.origin,
      priority,
      input: encode(input, { label: 'input', maxBytes: maxPayloadBytes }),
      parent: null,
      createdBy: randomUUID(),
      tags: [...new Set([...named.tags, ...tags.map((tag) => checkName('tag', tag))])],
    }
  }

  async #named(workflow: LazyWorkflowTarget) {
    const { registry, discover } = this.#deps
    const named = await resolveWorkflowTarget(workflow, this.#environment)
    const met = registry.workflow(named.name, named.version)
    // Which version of a class is the default one is known only when all of its files are.
    const isOpen = named.version === undefined && met?.writtenAs === 'class'
    if (!met || isOpen) await discover()
    const known = registry.workflow(named.name, named.version)
    if (known) return known
    const { name, version } = named
    // A ref with a version may name what only another application serves.
    if (version !== undefined) return { name, version, origin: null, tags: [] }
    const nearest = nearestName(
      name,
      registry.workflows().map((other) => other.name)
    )
    throw new E_UNKNOWN_WORKFLOW([
      name,
      nearest
        ? `Did you mean "${nearest}"?`
        : 'Register it, put its class into app/workflows, or name it with workflowRef(name, version)',
    ])
  }

  async #startHere(run: NewRun): Promise<RunRow> {
    const { commits, starter } = this.context
    let slot = starter?.offer(run.claimKey) ?? null
    try {
      const answer = await commits.write({ type: 'start', run, leaseTo: slot?.owner ?? null })
      if (answer.type === 'refused') throw answer.error
      if (answer.type !== 'started') throw new Error(`Unexpected answer "${answer.type}"`)
      if (answer.created && slot) {
        slot.use(answer.run, run.input)
        slot = null
      }
      return answer.run
    } finally {
      slot?.giveBack()
    }
  }

  async #startIn(client: unknown, run: NewRun): Promise<RunRow> {
    const store = await this.#open()
    if (!store.startWith) throw new E_STORE_NOT_TRANSACTIONAL()
    const answer = await store.startWith(client, { type: 'start', run, leaseTo: null })
    if (isTransaction(client)) client.after('commit', () => this.context.news.anything())
    return answer.run
  }

  #handle(runId: string): RunHandle<any> {
    return { runId, result: (options = {}) => this.#waiter.result(runId, options.timeoutMs) }
  }
}

function idOf(run: string | RunHandle): string {
  return typeof run === 'string' ? run : run.runId
}

interface Transaction {
  after(event: 'commit', listener: () => void): unknown
}

function isTransaction(client: unknown): client is Transaction {
  return (
    typeof client === 'object' &&
    client !== null &&
    typeof Reflect.get(client, 'after') === 'function'
  )
}

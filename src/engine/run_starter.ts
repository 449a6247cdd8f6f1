import { randomUUID } from 'node:crypto'
import type { Store, TransactionalStore } from '../contracts/store.ts'
import { checkName } from '../core/name.ts'
import { encode } from '../core/payload.ts'
import { checkPriority, DEFAULT_PRIORITY, type NewRun, type RunRow } from '../core/run.ts'
import { E_STORE_NOT_TRANSACTIONAL, E_UNKNOWN_WORKFLOW } from '../errors.ts'
import { nearestName } from '../core/nearest_name.ts'
import type { NamedWorkflow } from '../replay/context.ts'
import type { LazyWorkflowTarget, StartOptions } from '../types/workflow.ts'
import type { EngineContext } from './engine_context.ts'
import { newRun } from './new_run.ts'
import { newRunId } from './run_id.ts'
import { resolveWorkflowTarget, type TargetEnvironment } from './workflow_target.ts'

/** A store that may take part in the application's transactions. */
export type EngineStore = Store & Partial<TransactionalStore<unknown>>

/** Names workflows and stores runs of them. */
export class RunStarter {
  #context: EngineContext
  #environment: TargetEnvironment
  #store: () => Promise<EngineStore>

  constructor(params: {
    context: EngineContext
    environment: TargetEnvironment
    store: () => Promise<EngineStore>
  }) {
    this.#context = params.context
    this.#environment = params.environment
    this.#store = params.store
  }

  /** The run as it is stored: the new one, or the one that has its id. */
  async start(
    workflow: LazyWorkflowTarget,
    input: unknown,
    options: StartOptions
  ): Promise<{ wanted: NewRun; stored: RunRow }> {
    const wanted = await this.#newRun(workflow, input, options)
    const stored = options.client
      ? await this.#startIn(options.client, wanted)
      : await this.#startHere(wanted)
    return { wanted, stored }
  }

  /** A workflow that is registered here, or that a ref with a version names. Throws E_UNKNOWN_WORKFLOW. */
  async named(target: LazyWorkflowTarget): Promise<NamedWorkflow> {
    const { known, name, version } = await this.#find(target)
    if (known) return known
    // A ref with a version may name what only another application serves.
    if (version !== undefined) return { name, version, origin: null, tags: [] }
    const { registry } = this.#context
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

  /** The handler of failed or dead runs: one that nobody here knows waits for a worker that does. */
  async handler(target: LazyWorkflowTarget): Promise<NamedWorkflow> {
    const { known, name, version = '1' } = await this.#find(target)
    return known ?? { name, version, origin: null, tags: [] }
  }

  async #find(target: LazyWorkflowTarget) {
    const { registry, discover } = this.#context
    const { name, version } = await resolveWorkflowTarget(target, this.#environment)
    const met = registry.workflow(name, version)
    // Which version of a class is the default one is known only when all of its files are.
    const isOpen = version === undefined && met?.writtenAs === 'class'
    if (!met || isOpen) await discover()
    return { name, version, known: registry.workflow(name, version) }
  }

  async #newRun(
    workflow: LazyWorkflowTarget,
    input: unknown,
    options: StartOptions
  ): Promise<NewRun> {
    const named = await this.named(workflow)
    const { namespace = 'default', priority = DEFAULT_PRIORITY, tags = [], runId } = options
    const { maxPayloadBytes } = this.#context.options
    return newRun(named, {
      id: runId === undefined ? newRunId() : checkName('run id', runId),
      namespace: checkName('namespace', namespace),
      priority: checkPriority(priority),
      input: encode(input, { label: 'input', maxBytes: maxPayloadBytes }),
      createdBy: randomUUID(),
      tags: tags.map((tag) => checkName('tag', tag)),
    })
  }

  async #startHere(run: NewRun): Promise<RunRow> {
    const { commits, starter } = this.#context
    let slot = starter?.offer(run.claimKey) ?? null
    try {
      const answer = await commits.write({ type: 'start', run, leaseTo: slot?.owner ?? null })
      if (answer.type === 'refused') throw answer.error
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
    const store = await this.#store()
    if (!store.startWith) throw new E_STORE_NOT_TRANSACTIONAL()
    const answer = await store.startWith(client, { type: 'start', run, leaseTo: null })
    if (isTransaction(client)) client.after('commit', () => this.#context.news.anything())
    return answer.run
  }
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

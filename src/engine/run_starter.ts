import { randomUUID } from 'node:crypto'
import { checkOption } from '../core/known_options.ts'
import { checkName } from '../core/name.ts'
import { encode } from '../core/payload.ts'
import { checkPriority, DEFAULT_PRIORITY, type NewRun, type RunRow } from '../core/run.ts'
import { E_RUN_ID_TAKEN, E_STORE_NOT_TRANSACTIONAL } from '../errors.ts'
import type { LazyWorkflowTarget, StartOptions } from '../types/workflow.ts'
import type { EngineContext } from './engine_context.ts'
import { DEAD_LETTER_PREFIX } from './failure_routing.ts'
import { newRun } from './new_run.ts'
import { newRunId } from './run_id.ts'

/** Stores new runs. */
export class RunStarter {
  #context: EngineContext

  constructor(context: EngineContext) {
    this.#context = context
  }

  /** Resolves to the id of the new run, or of the one of the same workflow that has it. Throws E_RUN_ID_TAKEN. */
  async start(
    workflow: LazyWorkflowTarget,
    input: unknown,
    options: StartOptions
  ): Promise<string> {
    const wanted = await this.#newRun(workflow, input, options)
    const stored = options.client
      ? await this.#startIn(options.client, wanted)
      : await this.#startHere(wanted)
    if (stored.workflow !== wanted.workflow) this.#refuseTaken(wanted, stored)
    return stored.id
  }

  /** A handler of a dead run that is started by hand beside a declared one is that one: recovery must not end for it. */
  #refuseTaken(wanted: NewRun, { id, workflow }: RunRow): void {
    if (!id.startsWith(DEAD_LETTER_PREFIX))
      throw new E_RUN_ID_TAKEN([id, workflow, wanted.workflow])
    this.#context.log.warn(
      `Run "${id}" exists, as a run of "${workflow}": it is not started as "${wanted.workflow}" as well`
    )
  }

  async #newRun(
    workflow: LazyWorkflowTarget,
    input: unknown,
    options: StartOptions
  ): Promise<NewRun> {
    const named = await this.#context.finder.named(workflow)
    const { namespace = 'default', priority = DEFAULT_PRIORITY, tags = [], runId } = options
    checkOption('engine.start()', {
      name: 'tags',
      value: tags,
      expected: 'a list of tags',
      isValid: Array.isArray(tags),
    })
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
    const store = await this.#context.store()
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

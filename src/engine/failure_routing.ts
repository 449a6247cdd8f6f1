import { Exception } from '@poppinss/utils/exception'
import type { NewChild, TurnEnd } from '../core/change_set.ts'
import { decideRoute, type FailureRouteRow } from '../core/failure_routes.ts'
import { handoffSeq, type NewWait } from '../core/history.ts'
import { deriveId } from '../core/name.ts'
import { decode, encode } from '../core/payload.ts'
import type { RunRow } from '../core/run.ts'
import { decodeError, type SerializedError, serializeError } from '../core/serialized_error.ts'
import { E_INVALID_WORKFLOW } from '../errors.ts'
import type { LazyWorkflowTarget, FailureRoute } from '../types/workflow.ts'
import type { WorkflowDefinition } from './definitions.ts'
import type { RunEventEmitter } from './events.ts'
import { newRun } from './new_run.ts'
import type { Registry } from './registry.ts'
import type { Changes } from './run_writer.ts'
import type { NamedWorkflow } from '../replay/context.ts'

interface ResolvedRoute extends FailureRouteRow {
  handler: NamedWorkflow
}

export interface FailureRoutingParams {
  registry: Registry
  events: RunEventEmitter
  /** Finds the workflow that a route or an option names. */
  resolve: (target: LazyWorkflowTarget) => Promise<NamedWorkflow>
  /** Handler of dead runs whose workflow names none; null = none. */
  deadLetterWorkflow: LazyWorkflowTarget | null
}

/** A little time for those who listen to the death of a run, before its handler starts. */
const DEAD_LETTER_DELAY_MS = 5_000
export const DEAD_LETTER_PREFIX = 'dlq:'

/** Decides who takes care of failed and dead runs, and makes the handler runs. */
export class FailureRouting {
  #params: FailureRoutingParams

  constructor(params: FailureRoutingParams) {
    this.#params = params
  }

  /**
   * What a failure of a body comes to: its end, and what is written with it. A route that cannot be followed is told
   * of by `run.unrouted`, and the run fails.
   *
   * @param input encoded
   */
  async settle(
    row: RunRow,
    { failure, input }: { failure: TurnEnd & { kind: 'fail' }; input: string }
  ): Promise<{ end: TurnEnd & { kind: 'fail' | 'follow' }; changes: Changes }> {
    const error = decodeError(failure.error)
    const unrouted = { end: failure, changes: {} }
    const definition = this.#params.registry.workflow(row.workflow, row.version)
    if (!definition || definition.onError.length === 0) return unrouted
    const chain = [...row.routeChain, row.workflow]
    try {
      const routes = await this.routesOf(definition)
      const decision = decideRoute({ code: error.code, routes, chain })
      switch (decision.kind) {
        case 'none':
          return unrouted
        case 'unrouted':
          this.#tellUnrouted(row, error, decision.reason)
          return unrouted
        case 'follow': {
          const { route, tag } = decision
          const changes = this.#handoff(row, { handler: route.handler, chain, input, error })
          return { end: { ...failure, kind: 'follow', tag }, changes }
        }
      }
    } catch (problem) {
      const reason = `the routes of "${row.workflow}" cannot be followed: ${serializeError(problem).message}`
      this.#tellUnrouted(row, error, reason)
      return unrouted
    }
  }

  /** The handler run of a dead run, due in a little while; null = none is declared, or the run is one itself. */
  async deadLetter(
    row: RunRow,
    { error, input }: { error: string; input: string }
  ): Promise<NewChild[]> {
    if (row.id.startsWith(DEAD_LETTER_PREFIX)) return []
    const definition = this.#params.registry.workflow(row.workflow, row.version)
    const target = definition?.deadLetterWorkflow ?? this.#params.deadLetterWorkflow
    if (!target) return []
    const handler = await this.#params.resolve(target)
    const letter = {
      deadRunId: row.id,
      workflow: row.workflow,
      input: decode(input),
      error: decodeError(error),
    }
    const run = newRun(handler, {
      id: deriveId(DEAD_LETTER_PREFIX, row.id),
      namespace: row.namespace,
      input: encode(letter, { maxBytes: Infinity }),
      createdBy: `dead_letter:${row.id}`,
      dueIn: DEAD_LETTER_DELAY_MS,
      handles: { runId: row.id, as: 'dead_letter' },
    })
    return [{ run, acknowledge: false }]
  }

  /**
   * The routes of a workflow with their handlers as they are registered now. Rejects when a function that names one
   * does, and with what resolving a workflow rejects with.
   */
  routesOf(definition: WorkflowDefinition): Promise<ResolvedRoute[]> {
    return Promise.all(definition.onError.map((route) => this.#resolved(definition.name, route)))
  }

  /** Handlers of dead runs that registered workflows name, or the configuration (`workflow` null). Rejects as `routesOf`. */
  deadLetterHandlers(): Promise<{ workflow: string | null; handler: NamedWorkflow }[]> {
    const { registry, resolve, deadLetterWorkflow } = this.#params
    const named = [{ name: null, deadLetterWorkflow }, ...registry.workflows()]
    return Promise.all(
      named.flatMap(({ name, deadLetterWorkflow: target }) =>
        target ? resolve(target).then((handler) => ({ workflow: name, handler })) : []
      )
    )
  }

  /**
   * Finds every workflow that a registered one names for its failures and deaths, and so registers the classes among them: this
   * process then takes their runs, whoever has stored them. Rejects as `routesOf`.
   */
  async resolveAll(): Promise<void> {
    const seen = new Set<WorkflowDefinition>()
    const isNew = (definition: WorkflowDefinition) => !seen.has(definition)
    const { registry, resolve } = this.#params
    for (let next = registry.workflows(); next.length > 0;) {
      for (const definition of next) {
        seen.add(definition)
        await this.routesOf(definition)
        if (definition.deadLetterWorkflow) await resolve(definition.deadLetterWorkflow)
      }
      next = registry.workflows().filter(isNew)
    }
    if (this.#params.deadLetterWorkflow) await resolve(this.#params.deadLetterWorkflow)
  }

  async #resolved(workflow: string, route: FailureRoute): Promise<ResolvedRoute> {
    const code = codeOf(route.code)
    try {
      const handler = await this.#params.resolve(route.workflow)
      return { code, workflow: handler.name, handler }
    } catch (cause) {
      if (cause instanceof Exception) throw cause
      const problem = serializeError(cause).message
      throw new E_INVALID_WORKFLOW(
        [workflow, `the handler for "${code ?? '*'}" in "onError" cannot be loaded: ${problem}`],
        { cause }
      )
    }
  }

  #tellUnrouted(row: RunRow, error: SerializedError, reason: string): void {
    const { id, workflow, version, namespace } = row
    const facts = { runId: id, workflow, version, namespace }
    this.#params.events.emit('run.unrouted', { ...facts, error, reason })
  }

  #handoff(
    row: RunRow,
    params: {
      handler: NamedWorkflow
      chain: readonly string[]
      input: string
      error: SerializedError
    }
  ): Changes {
    const { handler, chain, input } = params
    const { message, code, details } = params.error
    const handed = {
      runId: row.id,
      workflow: row.workflow,
      input: decode(input),
      error: { message, code, details },
    }
    const id = deriveId(row.id, `.onError.${row.handoffs}`)
    const seq = handoffSeq(row.handoffs)
    const run = newRun(handler, {
      id,
      namespace: row.namespace,
      input: encode(handed, { maxBytes: Infinity }),
      createdBy: `${row.id}:${seq}`,
      parent: { runId: row.id, seq, index: 0, awaited: true, failFast: true },
      handles: { runId: row.id, as: 'on_error' },
      routeChain: chain,
    })
    const wait: NewWait = {
      seq,
      kind: 'handoff',
      name: `onError:${id}`,
      after: 0,
      token: null,
      dispatch: null,
      target: id,
      inputs: null,
      dueIn: null,
      dueAt: null,
      attempts: 0,
      error: null,
    }
    return { children: [{ run, acknowledge: false }], opened: [wait] }
  }
}

/** A route's code: a text, or that of an error class; null = the catch-all. */
export function codeOf(code: FailureRoute['code']): string | null {
  if (code === undefined) return null
  return typeof code === 'string' ? code : (code.code ?? null)
}

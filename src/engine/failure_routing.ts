import type { NewChild, TurnEnd } from '../core/change_set.ts'
import { decideRoute, type FailureRouteRow } from '../core/failure_routes.ts'
import { handoffSeq, type NewWait } from '../core/history.ts'
import { deriveId } from '../core/name.ts'
import { decode, encode } from '../core/payload.ts'
import type { RunRow } from '../core/run.ts'
import { decodeError } from '../core/serialized_error.ts'
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
  #routes = new WeakMap<WorkflowDefinition, Promise<ResolvedRoute[]>>()

  constructor(params: FailureRoutingParams) {
    this.#params = params
  }

  /**
   * What a failure of a run comes to: its end, and what is written with it.
   *
   * @param input encoded
   */
  async settle(
    row: RunRow,
    { failure, input }: { failure: TurnEnd & { kind: 'fail' }; input: string }
  ): Promise<{ end: TurnEnd & { kind: 'fail' | 'follow' }; changes: Changes }> {
    const definition = this.#params.registry.workflow(row.workflow, row.version)
    const routes = definition ? await this.routesOf(definition) : []
    const error = decodeError(failure.error)
    const chain = [...row.routeChain, row.workflow]
    const decision = decideRoute({ code: error.code, routes, chain })
    switch (decision.kind) {
      case 'none':
        return { end: failure, changes: {} }
      case 'unrouted':
        this.#params.events.emit('run.unrouted', {
          ...factsOf(row),
          error,
          reason: decision.reason,
        })
        return { end: failure, changes: {} }
      case 'follow': {
        const { route, tag } = decision
        const { message, code, details } = error
        const handed = {
          runId: row.id,
          workflow: row.workflow,
          input: decode(input),
          error: { message, code, details },
        }
        const end = { ...failure, kind: 'follow' as const, tag }
        return { end, changes: this.#handoff(row, { handler: route.handler, chain, handed }) }
      }
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

  /** The routes of a workflow with their handlers' names; resolved once. */
  routesOf(definition: WorkflowDefinition): Promise<ResolvedRoute[]> {
    const known = this.#routes.get(definition)
    if (known) return known
    const routes = Promise.all(definition.onError.map((route) => this.#resolved(route)))
    this.#routes.set(definition, routes)
    routes.catch(() => this.#routes.delete(definition))
    return routes
  }

  async #resolved({ code, workflow }: FailureRoute): Promise<ResolvedRoute> {
    const handler = await this.#params.resolve(workflow)
    return { code: codeOf(code), workflow: handler.name, handler }
  }

  #handoff(
    row: RunRow,
    params: { handler: NamedWorkflow; chain: readonly string[]; handed: unknown }
  ): Changes {
    const { handler, chain, handed } = params
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
      target: id,
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

function factsOf({ id, workflow, version, namespace }: RunRow) {
  return { runId: id, workflow, version, namespace }
}

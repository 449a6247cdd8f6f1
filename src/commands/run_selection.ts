import { isRunStatus, type RunSummary, type RunStatus } from '../core/run.ts'
import type { WorkflowEngine } from '../engine/engine.ts'
import { runPages } from './run_pages.ts'

/** The filter of a bulk action, as flags give it; undefined = not given. */
export interface GivenFilter {
  status?: string | undefined
  workflow?: string | undefined
  tag?: string | undefined
  namespace?: string | undefined
}

/** Which runs a bulk action is about: by id, or everything that matches. */
export type RunSelection =
  | { kind: 'ids'; runIds: readonly string[] }
  | {
      kind: 'filter'
      statuses: readonly RunStatus[]
      workflow?: string | undefined
      tag?: string | undefined
      namespace?: string | undefined
    }
  /** An argument is not valid, or there is none: it would be about every run there is. */
  | { kind: 'none'; problem: string }

export type FilteredSelection = RunSelection & { kind: 'filter' }

/** What the arguments of a bulk action select. `statuses`: those of runs that the action can do something with. */
export function selectRuns(params: {
  runIds: readonly string[]
  filter: GivenFilter
  statuses: readonly RunStatus[]
}): RunSelection {
  const { filter, statuses } = params
  const runIds = [...new Set(params.runIds)]
  const given = Object.entries(filter).filter(([, value]) => value !== undefined)
  if (runIds.length > 0 && given.length > 0)
    return wrong(`Give run ids or a filter, not both: ${runIds[0]} and --${given[0]?.[0]}`)
  if (runIds.length > 0) return { kind: 'ids', runIds }
  if (given.length === 0) {
    const flags = '--status, --workflow, --tag or --namespace'
    return wrong(`Without run ids it takes a filter: ${flags}`)
  }
  const { status, workflow, tag, namespace } = filter
  const chosen = status === undefined ? statuses : statuses.filter((known) => known === status)
  if (chosen.length > 0) return { kind: 'filter', statuses: chosen, workflow, tag, namespace }
  const what = isRunStatus(status)
    ? `Nothing is to be done with runs that are ${status}`
    : 'No such status'
  return wrong(`--status=${status}: ${what}. It takes ${statuses.join(', ')}`)
}

const MOST_SWEEPS = 3

/**
 * The runs of a filter, each once, a page at a time. A run that changes its status while the pages are read may be met
 * under none of several: they are read again until nothing new is found, a few times at most.
 */
export async function* selectedPages(
  engine: WorkflowEngine,
  selection: FilteredSelection
): AsyncGenerator<RunSummary[], void> {
  const { statuses, workflow, tag, namespace } = selection
  const met = new Set<string>()
  const sweeps = statuses.length === 1 ? 1 : MOST_SWEEPS
  for (let sweep = 0; sweep < sweeps; sweep++) {
    const before = met.size
    for (const status of statuses)
      for await (const page of runPages(engine, { status, workflow, tag, namespace })) {
        const fresh = page.filter(({ id }) => !met.has(id))
        for (const { id } of fresh) met.add(id)
        yield fresh
      }
    if (met.size === before) return
  }
}

function wrong(problem: string) {
  return { kind: 'none' as const, problem }
}

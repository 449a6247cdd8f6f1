import type { RunQuery } from '../contracts/store.ts'
import type { RunSummary, RunStatus } from '../core/run.ts'
import { decodeError } from '../core/serialized_error.ts'
import { readerOf, type WorkflowEngine } from '../engine/engine.ts'
import { E_UNREADABLE_PAYLOAD } from '../errors.ts'
import { type HandlerRun, readDeadLetterHandlers } from './handler_runs.ts'
import { runPages } from './run_pages.ts'

/** Dead runs of one workflow that died of the same. */
export interface DeadRunGroup {
  workflow: string
  code: string
  /** Names of the steps that were at work when the runs were lost for the last time. */
  steps: string[]
  count: number
  newest: { runId: string; endedAt: number | null; handler: HandlerRun | null }
  /** How many of the handler runs stand where; statuses that none has are left out. */
  handlers: Partial<Record<RunStatus, number>>
}

interface DeadRun {
  row: RunSummary
  steps: string[]
  handler: HandlerRun | null
}

/** The dead runs that match, in groups by workflow and cause; the group of the newest run first. */
export async function groupDeadRuns(
  engine: WorkflowEngine,
  filter: Pick<RunQuery, 'workflow' | 'tag' | 'namespace'>
): Promise<DeadRunGroup[]> {
  const reader = readerOf(engine)
  const groups = new Map<string, DeadRunGroup>()
  for await (const rows of runPages(engine, { ...filter, status: 'dead' })) {
    const ids = rows.map(({ id }) => id)
    const handlers = await readDeadLetterHandlers(engine, ids)
    const errors = await reader.errorsOf(ids)
    const steps = new Map(errors.map(({ runId, error }) => [runId, stepsOf(error)]))
    for (const row of rows)
      addTo(groups, {
        row,
        steps: steps.get(row.id) ?? [],
        handler: handlers.get(row.id) ?? null,
      })
  }
  return [...groups.values()].sort(
    (a, b) => (b.newest.endedAt ?? 0) - (a.newest.endedAt ?? 0) || b.count - a.count
  )
}

function addTo(groups: Map<string, DeadRunGroup>, { row, steps, handler }: DeadRun): void {
  const { id: runId, workflow, endedAt } = row
  const code = row.errorCode ?? ''
  const newest = { runId, endedAt, handler }
  const key = JSON.stringify([workflow, code, ...steps])
  const group = groups.get(key) ?? { workflow, code, steps, count: 0, newest, handlers: {} }
  groups.set(key, group)
  group.count++
  if ((endedAt ?? 0) > (group.newest.endedAt ?? 0)) group.newest = newest
  if (handler) group.handlers[handler.status] = (group.handlers[handler.status] ?? 0) + 1
}

/** Named by the error of the run; none where that cannot be read. */
function stepsOf(error: string): string[] {
  try {
    const { details } = decodeError(error)
    const steps: unknown =
      typeof details === 'object' && details !== null ? Reflect.get(details, 'steps') : null
    return Array.isArray(steps) ? [...new Set(steps.flatMap(nameOf))].sort() : []
  } catch (failure) {
    if (failure instanceof E_UNREADABLE_PAYLOAD) return []
    throw failure
  }
}

function nameOf(step: unknown): string[] {
  const name: unknown = typeof step === 'object' && step !== null ? Reflect.get(step, 'name') : null
  return typeof name === 'string' ? [name] : []
}

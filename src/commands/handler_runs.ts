import { handoffSeq } from '../core/history.ts'
import { deriveId } from '../core/name.ts'
import type { HandledRun, RunSummary, RunStatus } from '../core/run.ts'
import type { WorkflowEngine } from '../engine/engine.ts'
import { DEAD_LETTER_PREFIX } from '../engine/failure_routing.ts'
import type { RecordedOperation } from '../engine/run_history.ts'
import { E_RUN_NOT_FOUND } from '../errors.ts'
import { runPages } from './run_pages.ts'

/** A run that takes care, or has taken care, of another one. */
export interface HandlerRun {
  runId: string
  as: HandledRun['as']
  workflow: string
  status: RunStatus
  errorCode: string | null
  /** The handled run was retried since: it follows this handler no more. */
  isRetired: boolean
}

type Handled = Pick<RunSummary, 'id' | 'handoffs'>
type HandlerId = Pick<HandlerRun, 'runId' | 'as'>

/** The runs that take care of dead runs, by the id of the dead run; those without one are left out. */
export async function readDeadLetterHandlers(
  engine: WorkflowEngine,
  deadRunIds: readonly string[]
): Promise<Map<string, HandlerRun>> {
  const idOf = (deadRunId: string) => deriveId(DEAD_LETTER_PREFIX, deadRunId)
  const rows = await rowsOf(engine, deadRunIds.map(idOf))
  return new Map(
    deadRunIds.flatMap((deadRunId) => {
      const row = rows.get(idOf(deadRunId))
      return row ? [[deadRunId, { ...described(row), as: 'dead_letter', isRetired: false }]] : []
    })
  )
}

/**
 * The runs that take care of a run: of its failures in order, then of its death.
 *
 * @param params.history of every generation: a retired handoff is followed no more
 */
export async function readHandlers(
  engine: WorkflowEngine,
  params: { run: Handled; history: readonly RecordedOperation[] }
): Promise<HandlerRun[]> {
  const { run, history } = params
  const retired = new Set(history.filter(({ generation }) => generation > 0).map(({ seq }) => seq))
  const ids = handlerIds(run)
  const rows = await rowsOf(
    engine,
    ids.map(({ runId }) => runId)
  )
  return ids.flatMap(({ runId, as }, handoff) => {
    const row = rows.get(runId)
    const isRetired = as === 'on_error' && retired.has(handoffSeq(handoff))
    return row ? [{ ...described(row), as, isRetired }] : []
  })
}

/** The same as rows of a list. Throws E_RUN_NOT_FOUND. */
export async function runsHandling(engine: WorkflowEngine, runId: string): Promise<RunSummary[]> {
  const found = await rowsOf(engine, [runId])
  const run = found.get(runId)
  if (!run) throw new E_RUN_NOT_FOUND([runId])
  const ids = handlerIds(run).map((handler) => handler.runId)
  const rows = await rowsOf(engine, ids)
  return ids.map((id) => rows.get(id)).filter((row) => row !== undefined)
}

/** Rows of runs by id, without payloads; unknown runs are left out. */
async function rowsOf(
  engine: WorkflowEngine,
  ids: readonly string[]
): Promise<Map<string, RunSummary>> {
  const pages = await Array.fromAsync(runPages(engine, { ids }))
  return new Map(pages.flat().map((row) => [row.id, row]))
}

function described({ id: runId, workflow, status, errorCode }: RunSummary) {
  return { runId, workflow, status, errorCode }
}

/** Of every handler that a run can have had. */
function handlerIds({ id, handoffs }: Handled): HandlerId[] {
  const onError = Array.from({ length: handoffs }, (_, handoff): HandlerId => {
    return { runId: deriveId(id, `.onError.${handoff}`), as: 'on_error' }
  })
  return [...onError, { runId: deriveId(DEAD_LETTER_PREFIX, id), as: 'dead_letter' }]
}

/** Such as `the failure of order-7`. */
export function handledInWords({ runId, as }: HandledRun): string {
  switch (as) {
    case 'on_error':
      return `the failure of ${runId}`
    case 'dead_letter':
      return `the dead run ${runId}`
  }
}

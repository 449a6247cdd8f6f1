import { handoffSeq, type HistoryRecord } from '../core/history.ts'
import { deriveId } from '../core/name.ts'
import type { HandledRun, RunRow, RunStatus } from '../core/run.ts'
import type { WorkflowEngine } from '../engine/engine.ts'
import { DEAD_LETTER_PREFIX } from '../engine/failure_routing.ts'
import type { WorkflowRun } from '../engine/workflow_run.ts'
import { E_RUN_NOT_FOUND } from '../errors.ts'

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

type Handled = Pick<RunRow, 'id' | 'handoffs'>
type HandlerId = Pick<HandlerRun, 'runId' | 'as'>

/** The run that takes care of a dead run; null = there is none. */
export async function readDeadLetterHandler(
  engine: WorkflowEngine,
  deadRunId: string
): Promise<HandlerRun | null> {
  const [handler = null] = await readHandlers(engine, {
    run: { id: deadRunId, handoffs: 0 },
    history: [],
  })
  return handler
}

/**
 * The runs that take care of a run: of its failures in order, then of its death.
 *
 * @param params.history of every generation: a retired handoff is followed no more
 */
export async function readHandlers(
  engine: WorkflowEngine,
  params: { run: Handled; history: readonly HistoryRecord[] }
): Promise<HandlerRun[]> {
  const { run, history } = params
  const retired = new Set(history.filter(({ generation }) => generation > 0).map(({ seq }) => seq))
  const handlers: HandlerRun[] = []
  for (const [handoff, { runId, as }] of handlerIds(run).entries()) {
    const handler = await engine.getRun(runId)
    if (!handler) continue
    const { workflow, status, errorCode } = handler
    const isRetired = as === 'on_error' && retired.has(handoffSeq(handoff))
    handlers.push({ runId, as, workflow, status, errorCode, isRetired })
  }
  return handlers
}

/** The same as rows of a list. Throws E_RUN_NOT_FOUND. */
export async function runsHandling(engine: WorkflowEngine, runId: string): Promise<RunRow[]> {
  const run = await engine.getRun(runId)
  if (!run) throw new E_RUN_NOT_FOUND([runId])
  const handlers = await Promise.all(handlerIds(run).map((id) => engine.getRun(id.runId)))
  return handlers.filter((handler) => handler !== null).map(rowOf)
}

/** Of every handler that a run can have had. */
function handlerIds({ id, handoffs }: Handled): HandlerId[] {
  const onError = Array.from({ length: handoffs }, (_, handoff): HandlerId => {
    return { runId: deriveId(id, `.onError.${handoff}`), as: 'on_error' }
  })
  return [...onError, { runId: deriveId(DEAD_LETTER_PREFIX, id), as: 'dead_letter' }]
}

/** A list holds no payloads. */
function rowOf({ input: _i, output: _o, error: _e, tags: _t, ...row }: WorkflowRun): RunRow {
  return row
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

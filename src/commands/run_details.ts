import { isTerminal, type RunSummary } from '../core/run.ts'
import { readerOf, type WorkflowEngine } from '../engine/engine.ts'
import type { OpenOperation, RecordedOperation } from '../engine/run_history.ts'
import type { FoundWorker } from '../engine/worker_descriptor.ts'
import type { WorkflowRun } from '../engine/workflow_run.ts'
import { E_RUN_NOT_FOUND } from '../errors.ts'
import { countChildren, type ChildCounts } from './child_counts.ts'
import { type HandlerRun, readHandlers } from './handler_runs.ts'
import { runPages } from './run_pages.ts'

/** Everything there is to know of a run. */
export interface RunDetails {
  run: WorkflowRun
  history: RecordedOperation[]
  waits: OpenOperation[]
  /** By position: of `all` and `allSettled`, and of children that are waited for. */
  childCounts: Map<number, ChildCounts>
  /** The runs that take care of it: of its failures in order, then of its death. */
  handlers: HandlerRun[]
  /** Whether a live worker can execute it; null: it has ended. */
  isServed: boolean | null
  /** The live worker that executes it; null: none does, or is known. */
  worker: FoundWorker | null
}

/** Reads a run. Throws E_RUN_NOT_FOUND. */
export async function readRunDetails(engine: WorkflowEngine, runId: string): Promise<RunDetails> {
  const run = await engine.getRun(runId)
  const history = await engine.getHistory(runId)
  if (!run || !history) throw new E_RUN_NOT_FOUND([runId])
  const { records, waits } = history
  const live = records.filter(({ generation }) => generation === 0)
  const fanOuts = [...live, ...waits].filter(({ kind }) => kind === 'all' || kind === 'all_settled')
  const childCounts = new Map<number, ChildCounts>()
  const reader = readerOf(engine)
  for (const { seq } of [...fanOuts, ...waits.filter(({ kind }) => kind === 'child')])
    childCounts.set(seq, countChildren(await reader.childStates({ runId, seq })))
  const handlers = await readHandlers(engine, { run, history: records })
  const isServed = isTerminal(run.status) ? null : await reader.isServed(run)
  const worker = run.owner === null ? null : await reader.workerOf(run.owner)
  return { run, history: records, waits, childCounts, handlers, isServed, worker }
}

/** Every run that a run has started, in the order in which it did. */
export async function readChildren(
  engine: WorkflowEngine,
  parentId: string
): Promise<RunSummary[]> {
  const pages = await Array.fromAsync(runPages(engine, { parentId }))
  const place = ({ parent }: RunSummary) => parent ?? { seq: 0, index: 0 }
  return pages.flat().sort((a, b) => place(a).seq - place(b).seq || place(a).index - place(b).index)
}

/** The same as JSON can say it. */
export function forPrograms({ childCounts, ...details }: RunDetails): Omit<
  RunDetails,
  'childCounts'
> & {
  childCounts: (ChildCounts & { seq: number })[]
} {
  return { ...details, childCounts: [...childCounts].map(([seq, counts]) => ({ seq, ...counts })) }
}

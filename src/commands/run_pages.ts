import type { RunQuery } from '../contracts/store.ts'
import type { RunSummary } from '../core/run.ts'
import type { WorkflowEngine } from '../engine/engine.ts'

const PAGE = 500

/** Every run that matches, newest first, a page at a time. */
export async function* runPages(
  engine: WorkflowEngine,
  query: Omit<RunQuery, 'limit' | 'after'>
): AsyncGenerator<RunSummary[], void> {
  let after: string | undefined
  do {
    const { runs, next } = await engine.listRuns({ ...query, limit: PAGE, after })
    if (runs.length > 0) yield runs
    after = next ?? undefined
  } while (after !== undefined)
}

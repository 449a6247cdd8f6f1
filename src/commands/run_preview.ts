import type { RunSummary } from '../core/run.ts'
import type { WorkflowEngine } from '../engine/engine.ts'
import { type FilteredSelection, selectedPages } from './run_selection.ts'

/** What a bulk action would be about. */
export interface RunPreview {
  /** Of all that match. */
  count: number
  /** The first of them. */
  listed: RunSummary[]
}

const LISTED = 50

/** Counts the selected runs and keeps the first ones, changing nothing. */
export async function previewRuns(
  engine: WorkflowEngine,
  selection: FilteredSelection
): Promise<RunPreview> {
  const preview: RunPreview = { count: 0, listed: [] }
  for await (const page of selectedPages(engine, selection)) {
    preview.count += page.length
    preview.listed.push(...page.slice(0, LISTED - preview.listed.length))
  }
  return preview
}

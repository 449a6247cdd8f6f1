import InvalidLine, { type LineIssue } from '#exceptions/invalid_line'
import { countLines, readLines } from '#steps/read_lines'
import ImportLine from '#workflows/import_line'
import { BaseWorkflow } from '@adonis-agora/durable'
import type { WorkflowCtx } from '@adonis-agora/durable/types'

/** Lines whose children are started together: what the run's history holds of the file at a time. */
const SLICE = 1_000
const CONCURRENCY = 200

export interface ImportInput {
  /** How many lines, spread over the file. Default: all. */
  lines?: number | undefined
}

export interface ImportCounts {
  lines: number
  imported: number
  failed: number
  /** Lines with something wrong in a field, by field; a line may count in several. */
  invalid: Record<string, number>
}

/** Imports the file: one child run per line. */
export default class ImportAirports extends BaseWorkflow {
  static override workflow = { name: 'airports.import' }

  async run(ctx: WorkflowCtx, input: ImportInput): Promise<ImportCounts> {
    const all = await ctx.step(countLines)
    const lines = Math.min(all, input.lines ?? all)
    const every = Math.floor(all / lines)
    const counts: ImportCounts = { lines, imported: 0, failed: 0, invalid: {} }
    for (let from = 0; from < lines; from += SLICE) {
      const slice = await ctx.step(readLines, { from, to: Math.min(from + SLICE, lines), every })
      const results = await ctx.allSettled(ImportLine, slice, { concurrency: CONCURRENCY })
      for (const result of results) count(result, counts)
    }
    return counts
  }
}

function count(result: PromiseSettledResult<unknown>, counts: ImportCounts): void {
  if (result.status === 'fulfilled') {
    counts.imported++
    return
  }
  counts.failed++
  if (!InvalidLine.is(result.reason)) return
  const issues = result.reason.details as LineIssue[]
  for (const field of new Set(issues.map((issue) => issue.field)))
    counts.invalid[field] = (counts.invalid[field] ?? 0) + 1
}

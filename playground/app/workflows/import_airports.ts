import type { LineResult } from '#services/line_result'
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
  rejected: number
  /** Lines with something wrong in a field, by field; a line may count in several. */
  invalid: Record<string, number>
}

/** Imports the file: one child run per line. It fails when a line's run is dead, once the lines beside it have ended. */
export default class ImportAirports extends BaseWorkflow {
  static override workflow = { name: 'airports.import' }

  async run(ctx: WorkflowCtx, input: ImportInput): Promise<ImportCounts> {
    const all = await ctx.step(countLines)
    const lines = Math.min(all, input.lines ?? all)
    const counts: ImportCounts = { lines, imported: 0, rejected: 0, invalid: {} }
    for (let from = 0; from < lines; from += SLICE) {
      const to = Math.min(from + SLICE, lines)
      const slice = await ctx.step(readLines, { from, to, of: lines })
      const results = await ctx.all(ImportLine, slice, {
        mode: 'waitAll',
        concurrency: CONCURRENCY,
      })
      for (const result of results) count(result, counts)
    }
    return counts
  }
}

function count(result: LineResult, counts: ImportCounts): void {
  switch (result.status) {
    case 'imported':
      counts.imported++
      return
    case 'rejected':
      counts.rejected++
      for (const field of result.fields) counts.invalid[field] = (counts.invalid[field] ?? 0) + 1
  }
}

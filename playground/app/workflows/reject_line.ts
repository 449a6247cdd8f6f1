import InvalidLine from '#exceptions/invalid_line'
import type { RawLine } from '#services/airport_file'
import type { LineResult } from '#services/line_result'
import RejectedLines from '#services/rejected_lines'
import { BaseWorkflow, FatalError } from '@adonis-agora/durable'
import type { OnErrorInput, WorkflowCtx } from '@adonis-agora/durable/types'
import { inject } from '@adonisjs/core'

/** Records a line that is not valid; what it returns is the result of the line's run. */
@inject()
export default class RejectLine extends BaseWorkflow {
  static override workflow = { name: 'airports.line.rejected' }

  constructor(private rejected: RejectedLines) {
    super()
  }

  async run(ctx: WorkflowCtx, { runId, input, error }: OnErrorInput<RawLine>): Promise<LineResult> {
    if (!InvalidLine.is(error)) throw new FatalError(`Not an invalid line: ${error.message}`)
    const { fields } = await ctx.step(this.rejected.record, {
      runId,
      line: input,
      issues: error.details,
    })
    return { status: 'rejected', fields }
  }
}

import InvalidLine from '#exceptions/invalid_line'
import AirportDirectory from '#services/airport_directory'
import type { RawLine } from '#services/airport_file'
import type { LineResult } from '#services/line_result'
import TicketDesk from '#services/ticket_desk'
import { enrichLine } from '#steps/enrich_line'
import { validateLine } from '#steps/validate_line'
import RejectLine from '#workflows/reject_line'
import { BaseWorkflow } from '@adonis-agora/durable'
import type { DeadLetter, WorkflowCtx } from '@adonis-agora/durable/types'
import { inject } from '@adonisjs/core'

/** Brings one line of the file into the directory. A line that is not valid ends with the result of `RejectLine`. */
@inject()
export default class ImportLine extends BaseWorkflow {
  static override workflow = {
    name: 'airports.line',
    onError: [{ code: InvalidLine, workflow: RejectLine }],
  }

  constructor(
    private directory: AirportDirectory,
    private tickets: TicketDesk
  ) {
    super()
  }

  async run(ctx: WorkflowCtx, line: RawLine): Promise<LineResult> {
    const valid = await ctx.step(validateLine, line)
    const facts = await ctx.step(enrichLine, valid)
    const { iata } = await ctx.step(this.directory.store, facts)
    return { status: 'imported', iata }
  }

  /** A line that kills whoever imports it. */
  async deadLetter(ctx: WorkflowCtx, dead: DeadLetter<RawLine>) {
    return ctx.step(this.tickets.open, dead)
  }
}

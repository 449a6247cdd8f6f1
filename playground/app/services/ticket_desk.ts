import Ticket from '#models/ticket'
import { Step, WorkflowEngine, type DeadLetter } from '@adonis-agora/durable'
import { inject } from '@adonisjs/core'
import db from '@adonisjs/lucid/services/db'

/** Where people find what they have to look at. */
@inject()
export default class TicketDesk {
  constructor(private engine: WorkflowEngine) {}

  /** Opens a ticket for a dead run; there is one for each, however often this is called. */
  @Step()
  async open({ deadRunId, workflow, input, error }: DeadLetter): Promise<{ ticketId: number }> {
    const run = await this.engine.getRun(deadRunId)
    await db
      .table(Ticket.table)
      .insert({
        run_id: deadRunId,
        // Whoever waits for a dead run fails with it, and its retry takes the dead run along.
        retry_run_id: run?.parent?.runId ?? deadRunId,
        title: `${workflow}: run ${deadRunId} is dead`,
        reason: error?.message ?? 'unknown',
        payload: JSON.stringify(input),
      })
      .onConflict('run_id')
      .ignore()
    const ticket = await Ticket.findByOrFail('runId', deadRunId)
    return { ticketId: ticket.id }
  }
}

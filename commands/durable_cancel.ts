import { flags } from '@adonisjs/core/ace'
import { RunActionCommand } from '../src/commands/run_action_command.ts'
import { isTerminal, RUN_STATUSES } from '../src/core/run.ts'
import { WorkflowEngine } from '../src/engine/engine.ts'

/**
 * Cancels runs. Exit codes: 0 done, 1 an argument is not valid or a run could not be cancelled, 2 nothing was done.
 */
export default class DurableCancel extends RunActionCommand {
  static override commandName = 'durable:cancel'
  static override description = 'Cancel runs and the children they wait for, by id or by filter'
  static override help = [
    'A filter is a dry run, which counts and lists, until it is confirmed or --force is given:',
    '  {{ binaryName }} durable:cancel order-7 --compensate',
    '  {{ binaryName }} durable:cancel --workflow=orders.ship --status=suspended --force',
  ]

  @flags.boolean({ description: 'Undo their steps first, by their compensations' })
  declare compensate?: boolean

  @flags.string({ description: 'Why, as it is recorded on the runs' })
  declare reason?: string

  override async run() {
    const engine = await this.app.container.make(WorkflowEngine)
    const { compensate, reason } = this
    this.exitCode = await this.actOn(engine, {
      verb: 'cancel',
      done: compensate ? 'cancelled, as soon as the steps have been undone' : 'cancelled',
      unchanged: 'it has ended',
      statuses: RUN_STATUSES.filter((status) => !isTerminal(status)),
      act: (runId) => engine.cancel(runId, { compensate, reason }),
    })
  }
}

import { flags } from '@adonisjs/core/ace'
import type { CommandOptions } from '@adonisjs/core/types/ace'
import { statusesInWords } from '../src/commands/child_counts.ts'
import { type DeadRunGroup, groupDeadRuns } from '../src/commands/dead_runs.ts'
import { DurableCommand } from '../src/commands/durable_command.ts'
import { EXIT_CODES } from '../src/commands/exit_codes.ts'
import { readableInstant } from '../src/commands/readable.ts'
import { WorkflowEngine } from '../src/engine/engine.ts'

/** Groups dead runs by workflow and cause. Exit codes: 0 there are some, 1 they cannot be read, 2 there are none. */
export default class DurableDeadRuns extends DurableCommand {
  static override commandName = 'durable:dead-runs'
  static override description =
    'Show dead runs by workflow and cause, with the runs that take care of them'
  static override options: CommandOptions = { startApp: true }

  @flags.string({ description: 'Only runs of this workflow' })
  declare workflow?: string

  @flags.string({ description: 'Only runs with this tag' })
  declare tag?: string

  @flags.string({ description: 'Only runs of this namespace' })
  declare namespace?: string

  @flags.boolean({ description: 'Print JSON: { count, groups }' })
  declare json?: boolean

  override async run() {
    const engine = await this.app.container.make(WorkflowEngine)
    const { workflow, tag, namespace } = this
    const groups = await groupDeadRuns(engine, { workflow, tag, namespace })
    this.exitCode = groups.length > 0 ? EXIT_CODES.done : EXIT_CODES.nothing
    const count = groups.reduce((sum, group) => sum + group.count, 0)
    if (this.json) this.logger.log(JSON.stringify({ count, groups }, null, 2))
    else if (count === 0) this.logger.info('No dead runs')
    else this.#show(groups)
  }

  #show(groups: readonly DeadRunGroup[]): void {
    const head = [
      'workflow',
      'cause',
      'running step',
      'runs',
      'newest',
      'died',
      'its handler',
      'handlers',
    ]
    const table = this.ui.table().head(head)
    for (const { workflow, code, steps, count, newest, handlers } of groups) {
      const { runId, endedAt, handler } = newest
      table.row([
        workflow,
        code,
        steps.join(', '),
        String(count),
        runId,
        readableInstant(endedAt),
        handler ? `${handler.runId}: ${handler.status}` : 'none',
        statusesInWords({ statuses: handlers }),
      ])
    }
    table.render()
    this.logger.info('Details with "durable:show <id>", again with "durable:retry --status=dead"')
  }
}

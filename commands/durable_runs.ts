import { flags } from '@adonisjs/core/ace'
import type { CommandOptions } from '@adonisjs/core/types/ace'
import { DurableCommand } from '../src/commands/durable_command.ts'
import { handledInWords, runsHandling } from '../src/commands/handler_runs.ts'
import { readableInstant } from '../src/commands/readable.ts'
import { MAX_PAGE } from '../src/core/page_limit.ts'
import { RUN_STATUSES, type RunStatus } from '../src/core/run.ts'
import { WorkflowEngine } from '../src/engine/engine.ts'
import { checkRunQuery } from '../src/engine/run_query.ts'

/** Lists runs, newest first. Exit codes: 0 listed, 1 a flag is not valid or the runs cannot be read. */
export default class DurableRuns extends DurableCommand {
  static override commandName = 'durable:runs'
  static override description = 'List runs, newest first'
  static override options: CommandOptions = { startApp: true }

  @flags.string({ description: `Only runs with this status: ${RUN_STATUSES.join(', ')}` })
  declare status?: RunStatus

  @flags.string({ description: 'Only runs of this workflow' })
  declare workflow?: string

  @flags.string({ description: 'Only runs of this namespace' })
  declare namespace?: string

  @flags.string({ description: 'Only runs with this tag' })
  declare tag?: string

  @flags.string({ description: 'Only runs that the run with this id has started' })
  declare parent?: string

  @flags.string({
    description: 'Only runs that take care of the run with this id; takes no other filter',
  })
  declare handles?: string

  @flags.number({ description: `At most this many runs: 1 to ${MAX_PAGE}`, default: 50 })
  declare limit: number

  @flags.string({ description: 'The page after this cursor, which the previous page printed' })
  declare after?: string

  @flags.boolean({ description: 'Print the page as JSON: { runs, next }' })
  declare json?: boolean

  override async run() {
    const { status, workflow, namespace, tag, parent: parentId, limit, after } = this
    const query = { status, workflow, namespace, tag, parentId, after }
    checkRunQuery({ ...query, limit }, (option) =>
      option === 'parentId' ? '--parent' : `--${option}`
    )
    if (this.handles !== undefined && Object.values(query).some((value) => value !== undefined))
      return void this.refuse('--handles takes no other filter')
    const engine = await this.app.container.make(WorkflowEngine)
    const page =
      this.handles === undefined
        ? await engine.listRuns({ ...query, limit })
        : { runs: await runsHandling(engine, this.handles), next: null }
    if (this.json) {
      this.logger.log(JSON.stringify(page, null, 2))
      return
    }
    if (page.runs.length === 0) {
      this.logger.info('No runs')
      return
    }
    const head = ['run', 'workflow', 'status', 'error', 'handles', 'created']
    const table = this.ui.table().head(head)
    for (const run of page.runs) {
      table.row([
        run.id,
        `${run.workflow} (${run.version})`,
        run.status,
        run.errorCode ?? '',
        run.handles ? handledInWords(run.handles) : '',
        readableInstant(run.createdAt),
      ])
    }
    table.render()
    if (page.next !== null) this.logger.info(`More with --after=${page.next}`)
  }
}

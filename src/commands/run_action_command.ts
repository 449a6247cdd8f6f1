import { args, flags } from '@adonisjs/core/ace'
import type { CommandOptions } from '@adonisjs/core/types/ace'
import type { RunStatus } from '../core/run.ts'
import type { WorkflowEngine } from '../engine/engine.ts'
import { checkRunQuery } from '../engine/run_query.ts'
import { DurableCommand } from './durable_command.ts'
import { EXIT_CODES, type ExitCode } from './exit_codes.ts'
import { type ActionResult, actOnRuns, exitCodeOf, type RunAction } from './run_action.ts'
import { previewRuns, type RunPreview } from './run_preview.ts'
import { type FilteredSelection, selectRuns } from './run_selection.ts'

/** What a command does to runs, in words and deeds. */
export interface RunActionDescription {
  /** As in `Do you want to retry 3 runs?` */
  verb: string
  /** As in `3 runs retried`. */
  done: string
  /** Why nothing is to be done with a run. */
  unchanged: string
  /** Statuses of runs that it can do something with. */
  statuses: readonly RunStatus[]
  act: RunAction
}

/**
 * What changes runs from the terminal: those whose ids are given, at once; those that match a filter, after they have
 * been counted and listed and somebody has confirmed, or with --force.
 */
export abstract class RunActionCommand extends DurableCommand {
  static override options: CommandOptions = { startApp: true }

  @args.spread({ description: 'Ids of the runs', required: false })
  declare runIds?: string[]

  @flags.string({ description: 'All runs with this status' })
  declare status?: string

  @flags.string({ description: 'All runs of this workflow' })
  declare workflow?: string

  @flags.string({ description: 'All runs with this tag' })
  declare tag?: string

  @flags.string({ description: 'All runs of this namespace' })
  declare namespace?: string

  @flags.boolean({ description: 'Act on what the filter matches without asking' })
  declare force?: boolean

  @flags.boolean({ description: 'Print JSON' })
  declare json?: boolean

  /** Does what the command is for. */
  protected async actOn(
    engine: WorkflowEngine,
    description: RunActionDescription
  ): Promise<ExitCode> {
    const { status, workflow, tag, namespace, runIds = [] } = this
    const filter = { status, workflow, tag, namespace }
    const selection = selectRuns({ runIds, filter, statuses: description.statuses })
    if (selection.kind === 'none') return this.refuse(selection.problem)
    checkRunQuery({ workflow, tag, namespace }, (option) => `--${option}`)
    if (selection.kind === 'filter') {
      const isConfirmed = await this.#confirmed(engine, { selection, description })
      if (!isConfirmed) return EXIT_CODES.nothing
    }
    const result = await actOnRuns(engine, { selection, act: description.act })
    this.#tell(result, description)
    return exitCodeOf(result)
  }

  /** Nothing is changed before somebody has seen how much it is. */
  async #confirmed(
    engine: WorkflowEngine,
    params: { selection: FilteredSelection; description: RunActionDescription }
  ): Promise<boolean> {
    if (this.force) return true
    const preview = await previewRuns(engine, params.selection)
    this.#show(preview)
    if (preview.count === 0 || this.json) return false
    const { verb } = params.description
    if (process.stdin.isTTY)
      return this.prompt.confirm(`Do you want to ${verb} ${inRuns(preview.count)}?`)
    this.logger.info(`Nothing was done. To ${verb} ${inRuns(preview.count)}, pass --force`)
    return false
  }

  #show({ count, listed }: RunPreview): void {
    if (this.json) {
      this.logger.log(JSON.stringify({ dryRun: true, count, runs: listed }, null, 2))
      return
    }
    if (count === 0) return this.logger.info('No runs')
    const table = this.ui.table().head(['run', 'workflow', 'status', 'error'])
    for (const { id, workflow, version, status, errorCode } of listed)
      table.row([id, `${workflow} (${version})`, status, errorCode ?? ''])
    table.render()
    if (count > listed.length) this.logger.info(`and ${count - listed.length} more`)
  }

  #tell(result: ActionResult, description: RunActionDescription): void {
    if (this.json) {
      this.logger.log(JSON.stringify({ dryRun: false, ...result }, null, 2))
      return
    }
    const { done, unchanged, errors } = result
    for (const { runId, message } of errors) this.logger.error(`${runId}: ${message}`)
    if (unchanged.length === 1)
      this.logger.info(`Nothing is to be done with ${unchanged[0]}: ${description.unchanged}`)
    else if (unchanged.length > 1)
      this.logger.info(
        `Nothing is to be done with ${inRuns(unchanged.length)}: ${description.unchanged}`
      )
    if (done.length > 0) this.logger.success(`${inRuns(done.length)} ${description.done}`)
    else if (unchanged.length + errors.length === 0) this.logger.info('No runs')
  }
}

function inRuns(count: number): string {
  return count === 1 ? '1 run' : `${count} runs`
}

import { flags } from '@adonisjs/core/ace'
import { EXIT_CODES, type ExitCode } from '../src/commands/exit_codes.ts'
import { RunActionCommand } from '../src/commands/run_action_command.ts'
import { WorkflowEngine } from '../src/engine/engine.ts'
import { E_RUN_NOT_FOUND } from '../src/errors.ts'

/**
 * Runs failed and dead runs again. Exit codes: 0 done, 1 an argument is not valid or a run could not be retried,
 * 2 nothing was done.
 */
export default class DurableRetry extends RunActionCommand {
  static override commandName = 'durable:retry'
  static override description = 'Run failed and dead runs again, by id or by filter'
  static override help = [
    'A filter is a dry run, which counts and lists, until it is confirmed or --force is given:',
    '  {{ binaryName }} durable:retry order-7 order-8',
    '  {{ binaryName }} durable:retry --status=dead --workflow=orders.ship --force',
    `  {{ binaryName }} durable:retry order-7 --input='{"order":7}'`,
  ]

  @flags.string({
    description: 'JSON: start a new run with this input instead, of the same workflow',
  })
  declare input?: string

  override async run() {
    const engine = await this.app.container.make(WorkflowEngine)
    this.exitCode =
      this.input === undefined ? await this.#again(engine) : await this.#anew(engine, this.input)
  }

  #again(engine: WorkflowEngine): Promise<ExitCode> {
    return this.actOn(engine, {
      verb: 'retry',
      done: 'retried',
      unchanged: 'neither failed nor dead, and it is not waiting',
      statuses: ['failed', 'dead'],
      act: (runId) => engine.requeue(runId),
    })
  }

  async #anew(engine: WorkflowEngine, text: string): Promise<ExitCode> {
    const { runIds = [], status, workflow, tag, namespace } = this
    const [runId] = runIds
    const hasFilter = [status, workflow, tag, namespace].some((value) => value !== undefined)
    if (runId === undefined || runIds.length > 1 || hasFilter)
      return this.refuse('--input takes the id of one run')
    const input = parsed(text)
    if (input instanceof SyntaxError) return this.refuse(`--input is not JSON: ${input.message}`)
    const started = await engine.retryWithInput(runId, input)
    if (!started) throw new E_RUN_NOT_FOUND([runId])
    if (this.json) this.logger.log(JSON.stringify(started, null, 2))
    else this.logger.success(`Run ${started.runId} has been started with the new input`)
    return EXIT_CODES.done
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    return error
  }
}

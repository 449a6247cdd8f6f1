import { flags } from '@adonisjs/core/ace'
import type { CommandOptions } from '@adonisjs/core/types/ace'
import { constants } from 'node:os'
import { DurableCommand } from '../src/commands/durable_command.ts'
import { EXIT_CODES } from '../src/commands/exit_codes.ts'
import { WorkflowEngine } from '../src/engine/engine.ts'
import { WORKER_OPTIONS } from '../src/option_table.ts'
import { isUnderDevelopmentServer } from '../src/worker/development_server.ts'
import { hasTerminationBegun } from '../src/worker/termination.ts'
import { isWatchdogWanted } from '../src/worker/watchdog_wanted.ts'
import { jsonOutput, logOutput, quiet, type WorkerOutput } from '../src/worker/work_output.ts'
import { WorkReport } from '../src/worker/work_report.ts'
import { DurableWorker } from '../src/worker/worker.ts'

/** Runs workflows until it is told to stop. */
export default class DurableWork extends DurableCommand {
  static override commandName = 'durable:work'
  static override description =
    'Run workflows until SIGTERM or SIGINT; a second signal exits at once'
  static override options: CommandOptions = { startApp: true, staysAlive: true }

  @flags.boolean({ description: 'End when nothing is due and nothing runs, for cron and CI' })
  declare stopWhenIdle?: boolean

  @flags.boolean({ description: 'Print one JSON object per event instead of log lines' })
  declare json?: boolean

  @flags.boolean({ description: 'Print what goes wrong, and a summary every 30 s' })
  declare quiet?: boolean

  @flags.number({ description: 'Runs executed at once. Default: the configured concurrency' })
  declare concurrency?: number

  @flags.string({
    description: 'Stable name of the worker: it claims the runs of its predecessor at once',
  })
  declare name?: string

  override async run() {
    try {
      await this.#work()
    } catch (error) {
      // Only the termination hands the exit code of a command that stays alive to the process.
      this.exitCode = EXIT_CODES.error
      await this.app.terminate()
      throw error
    }
  }

  async #work(): Promise<void> {
    const problem = this.#problem()
    if (problem !== null) {
      this.refuse(problem)
      await this.app.terminate()
      return
    }
    const engine = await this.app.container.make(WorkflowEngine)
    const output = await this.#output()
    if (hasTerminationBegun(this.app)) return
    const worker = new DurableWorker({
      engine,
      watchdog: isWatchdogWanted(this.app),
      isCounted: !isUnderDevelopmentServer(),
      name: this.name,
      concurrency: this.concurrency,
      onStarted: (description) => output.started(description),
    })
    const report = new WorkReport(engine, output)
    this.app.terminating(async () => {
      await worker.stop()
      report.stop()
    })
    this.#listen()
    // Steps build URLs, which only a committed router can.
    const router = await this.app.container.make('router')
    router.commit()

    await worker.start()
    if (!this.stopWhenIdle) return this.#tellWaiting(worker, output)
    await worker.whenIdle()
    await this.app.terminate()
  }

  /** Why the flags cannot be used: they obey the rules of the configuration. */
  #problem(): string | null {
    for (const flag of ['concurrency', 'name'] as const) {
      const value = this[flag]
      const { accepts, expected } = WORKER_OPTIONS[flag]
      if (value !== undefined && !accepts(value))
        return `Invalid --${flag}: got ${JSON.stringify(value)}, expected ${expected}`
    }
    return null
  }

  async #tellWaiting(worker: DurableWorker, output: WorkerOutput): Promise<void> {
    // If the store has just gone away, the worker itself says so and asks again.
    const standing = await worker.standing().catch(() => null)
    if (standing?.isIdle) output.waiting(standing.dueIn)
  }

  /** The first signal drains, the second exits at once with the signal's status. */
  #listen(): void {
    let isDraining = false
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      this.app.listen(signal, () => {
        if (isDraining) process.exit(128 + constants.signals[signal])
        isDraining = true
        void this.app.terminate()
      })
    }
  }

  async #output(): Promise<WorkerOutput> {
    const print = (line: object) => process.stdout.write(`${JSON.stringify(line)}\n`)
    const { options } = await this.app.container.make('durable.config')
    const output = this.json
      ? jsonOutput(print)
      : // During development lines are printed for people: a fact each would take a line of its own.
        logOutput({
          log: await this.app.container.make('logger'),
          fields: !this.app.inDev,
          workflowsPath:
            options.workflowsPath ?? this.app.rcFile.directories.workflows ?? 'app/workflows',
        })
    return this.quiet ? quiet(output) : output
  }
}

import { BaseCommand, flags } from '@adonisjs/core/ace'
import type { CommandOptions } from '@adonisjs/core/types/ace'
import { constants } from 'node:os'
import { WorkflowEngine } from '../src/engine/engine.ts'
import { isWatchdogWanted } from '../src/worker/watchdog_wanted.ts'
import { WorkReport, type WorkCounts, type WorkEvent } from '../src/worker/work_report.ts'
import { DurableWorker } from '../src/worker/worker.ts'

/** Runs workflows until it is told to stop. */
export default class DurableWork extends BaseCommand {
  static override commandName = 'durable:work'
  static override description =
    'Run workflows until SIGTERM or SIGINT; a second signal exits at once'
  static override options: CommandOptions = { startApp: true, staysAlive: true }

  @flags.boolean({ description: 'End when nothing is due and nothing runs, for cron and CI' })
  declare stopWhenIdle?: boolean

  @flags.boolean({ description: 'Print one JSON object per event instead of log lines' })
  declare json?: boolean

  @flags.number({ description: 'Runs executed at once. Default: the configured concurrency' })
  declare concurrency?: number

  @flags.string({
    description: 'Stable name of the worker: it takes over what its predecessor ran',
  })
  declare name?: string

  override async run() {
    if (
      this.concurrency !== undefined &&
      !(this.concurrency >= 1 && Number.isInteger(this.concurrency))
    ) {
      this.logger.error('--concurrency must be a whole number of at least 1')
      this.exitCode = 1
      await this.app.terminate()
      return
    }
    const engine = await this.app.container.make(WorkflowEngine)
    const worker = new DurableWorker({
      engine,
      watchdog: isWatchdogWanted(this.app),
      name: this.name,
      concurrency: this.concurrency,
    })
    const report = await this.#report(engine)
    this.app.terminating(async () => {
      await worker.stop()
      report.stop()
    })
    this.#listen()
    // Steps build URLs, which only a committed router can.
    const router = await this.app.container.make('router')
    router.commit()

    try {
      await worker.start()
      if (!this.stopWhenIdle) return
      await worker.whenIdle()
    } catch (error) {
      this.exitCode = 1
      await this.app.terminate()
      throw error
    }
    await this.app.terminate()
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

  async #report(engine: WorkflowEngine): Promise<WorkReport> {
    if (this.json) {
      const print = (line: object) => process.stdout.write(`${JSON.stringify(line)}\n`)
      return new WorkReport(engine, {
        event: print,
        summary: (counts) => print({ event: 'worker.summary', ...counts }),
      })
    }
    const logger = await this.app.container.make('logger')
    return new WorkReport(engine, {
      event: ({ event, ...details }: WorkEvent) => {
        const message = `${event.replace('run.', 'run ')}: ${details.workflow} ${details.runId}`
        if (event === 'run.started' || event === 'run.completed') logger.info(details, message)
        else logger.warn(details, message)
      },
      summary: (counts: WorkCounts) => logger.info(counts, 'runs since the worker started'),
    })
  }
}

import { importReport } from '#services/import_report'
import engine from '@adonis-agora/durable/services/main'
import { args, BaseCommand } from '@adonisjs/core/ace'
import type { CommandOptions } from '@adonisjs/core/types/ace'

/** Prints what an import came to, as JSON. Exit codes: 0 printed, 1 there is no such import. */
export default class ReportAirports extends BaseCommand {
  static override commandName = 'airports:report'
  static override description = 'Print what an import came to, as JSON'
  static override options: CommandOptions = { startApp: true }

  @args.string({ description: 'Id of the run of the import' })
  declare runId: string

  override async run() {
    const report = await importReport(engine, this.runId)
    if (!report) {
      this.logger.error(`There is no import "${this.runId}"`)
      this.exitCode = 1
      return
    }
    console.log(JSON.stringify(report))
  }
}

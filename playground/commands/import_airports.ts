import ImportAirports from '#workflows/import_airports'
import engine from '@adonis-agora/durable/services/main'
import { BaseCommand, flags } from '@adonisjs/core/ace'
import type { CommandOptions } from '@adonisjs/core/types/ace'

/** Starts the import of the airports. Workers do it. */
export default class StartImport extends BaseCommand {
  static override commandName = 'airports:import'
  static override description = 'Start the import of the airports'
  static override options: CommandOptions = { startApp: true }

  @flags.number({ description: 'How many lines, spread over the file. Default: all' })
  declare lines?: number

  @flags.string({ description: 'Id of the run. Default: a random one' })
  declare runId?: string

  override async run() {
    const { lines, runId } = this
    const run = await engine.start(ImportAirports, { lines }, { runId })
    this.logger.success(`Started run ${run.runId}. Workers are started by "node ace durable:work"`)
  }
}

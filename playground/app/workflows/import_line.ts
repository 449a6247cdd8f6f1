import AirportDirectory from '#services/airport_directory'
import type { RawLine } from '#services/airport_file'
import { enrichLine } from '#steps/enrich_line'
import { validateLine } from '#steps/validate_line'
import { BaseWorkflow } from '@adonis-agora/durable'
import type { WorkflowCtx } from '@adonis-agora/durable/types'
import { inject } from '@adonisjs/core'

/** Brings one line of the file into the directory. A line that is not valid ends its run `failed`. */
@inject()
export default class ImportLine extends BaseWorkflow {
  static override workflow = { name: 'airports.line' }

  constructor(private directory: AirportDirectory) {
    super()
  }

  async run(ctx: WorkflowCtx, line: RawLine) {
    const valid = await ctx.step(validateLine, line)
    const facts = await ctx.step(enrichLine, valid)
    return ctx.step(this.directory.store, facts)
  }
}

import { args, BaseCommand, flags } from '@adonisjs/core/ace'
import type { CommandOptions } from '@adonisjs/core/types/ace'
import { stubsRoot } from '../stubs/main.ts'

/** Makes a workflow class. */
export default class MakeWorkflow extends BaseCommand {
  static override commandName = 'make:workflow'
  static override description = 'Create a new workflow class in app/workflows'
  static override options: CommandOptions = { allowUnknownFlags: true }

  @args.string({ description: 'Name of the workflow' })
  declare name: string

  @flags.boolean({ description: 'Overwrite an existing file', alias: 'f' })
  declare force?: boolean

  override async run() {
    const codemods = await this.createCodemods()
    codemods.overwriteExisting = this.force === true
    await codemods.makeUsingStub(stubsRoot, 'make/workflow/main.stub', {
      flags: this.parsed.flags,
      entity: this.app.generators.createEntity(this.name),
    })
  }
}

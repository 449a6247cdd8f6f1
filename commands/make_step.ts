import { args, BaseCommand, flags } from '@adonisjs/core/ace'
import type { CommandOptions } from '@adonisjs/core/types/ace'
import { stubsRoot } from '../stubs/main.ts'

/** Makes a class whose methods are steps. */
export default class MakeStep extends BaseCommand {
  static override commandName = 'make:step'
  static override description = 'Create a new class with a step in app/steps'
  static override options: CommandOptions = { allowUnknownFlags: true }

  @args.string({ description: 'Name of the class' })
  declare name: string

  @flags.boolean({ description: 'Overwrite an existing file', alias: 'f' })
  declare force?: boolean

  override async run() {
    const codemods = await this.createCodemods()
    codemods.overwriteExisting = this.force === true
    await codemods.makeUsingStub(stubsRoot, 'make/step/main.stub', {
      flags: this.parsed.flags,
      entity: this.app.generators.createEntity(this.name),
    })
  }
}

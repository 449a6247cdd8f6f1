import { args, BaseCommand, flags } from '@adonisjs/core/ace'
import type { CommandOptions } from '@adonisjs/core/types/ace'

/** What the commands extend that make the file of a class. */
export abstract class MakeCommand extends BaseCommand {
  static override options: CommandOptions = { allowUnknownFlags: true }

  @args.string({ description: 'Name of the class' })
  declare name: string

  @flags.boolean({ description: 'Overwrite an existing file', alias: 'f' })
  declare force?: boolean

  /** Writes the file that the stub at `path` below `stubsRoot` describes. */
  protected async make(stubsRoot: string, path: string): Promise<void> {
    const codemods = await this.createCodemods()
    codemods.overwriteExisting = this.force === true
    await codemods.makeUsingStub(stubsRoot, path, {
      flags: this.parsed.flags,
      entity: this.app.generators.createEntity(this.name),
    })
  }
}

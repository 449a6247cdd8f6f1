import { MakeCommand } from '../src/commands/make_command.ts'
import { stubsRoot } from '../stubs/main.ts'

/** Makes a class whose methods are steps. */
export default class MakeStep extends MakeCommand {
  static override commandName = 'make:step'
  static override description = 'Create a new class with a step in app/steps'

  override async run() {
    await this.make(stubsRoot, 'make/step/main.stub')
  }
}

import { MakeCommand } from '../src/commands/make_command.ts'
import { stubsRoot } from '../stubs/main.ts'

/** Makes a workflow class. */
export default class MakeWorkflow extends MakeCommand {
  static override commandName = 'make:workflow'
  static override description = 'Create a new workflow class in app/workflows'

  override async run() {
    await this.make(stubsRoot, 'make/workflow/main.stub')
  }
}

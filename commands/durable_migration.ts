import { DurableCommand } from '../src/commands/durable_command.ts'
import { hasLucid } from '../src/configure/application_files.ts'
import { publishMigration } from '../src/configure/migration.ts'
import { stubsRoot } from '../stubs/main.ts'

/** Publishes the migration that the application lacks. Exit codes: 0 it has every one now, 1 it has no Lucid. */
export default class DurableMigration extends DurableCommand {
  static override commandName = 'durable:migration'
  static override description =
    'Publish the migration of the durable tables that the application lacks'

  override async run() {
    if (!(await hasLucid(this.app))) {
      this.refuse(
        'Migrations belong to Lucid, which this application has not configured. Add it by "node ace add @adonisjs/lucid"'
      )
      return
    }
    await publishMigration(this, stubsRoot)
    this.logger.info('Next: "node ace migration:run"')
  }
}

import type Configure from '@adonisjs/core/commands/configure'

/** Registers the package's provider and commands with an application. */
export async function configure(command: Configure): Promise<void> {
  const codemods = await command.createCodemods()
  await codemods.updateRcFile((rcFile) => {
    rcFile.addProvider('@adonis-agora/durable/durable_provider')
    rcFile.addCommand('@adonis-agora/durable/commands')
  })
}

import type Configure from '@adonisjs/core/commands/configure'
import { appendFile, writeFile } from 'node:fs/promises'
import { hasLucid, textOf } from './src/configure/application_files.ts'
import { makesNoOtherTable, publishMigration } from './src/configure/migration.ts'
import { withWorkflowFolders } from './src/configure/package_json.ts'
import { stubsRoot } from './stubs/main.ts'

type StoreName = 'lucid' | 'memory'

/** The store to configure, from `--store`, from what the application has, or from an answer where somebody can give one; null: none was chosen. */
async function chooseStore(command: Configure): Promise<StoreName | null> {
  const given: unknown = command.parsedFlags.store
  if (given === 'lucid' || given === 'memory') return given
  if (given !== undefined) {
    command.logger.error(`--store must be lucid or memory, not "${String(given)}"`)
    return null
  }
  if (await hasLucid(command.app)) return 'lucid'
  command.logger.warning(
    'Runs are kept in the database of the application, and this one has not configured Lucid. Add it by ' +
      '"node ace add @adonisjs/lucid", then configure this package again'
  )
  if (!process.stdin.isTTY) {
    command.logger.info(
      'For the memory store, which forgets every run when the process ends, pass --store=memory'
    )
    return null
  }
  const accepted = await command.prompt.confirm(
    'Configure the memory store instead? It forgets every run when the process ends',
    { name: 'memory_store' }
  )
  return accepted ? 'memory' : null
}

/** Adds a variable to a file of environment variables, unless it has it; a file that is missing is made. */
async function addVariable(path: string, params: { name: string; value: string }): Promise<void> {
  const text = await textOf(path)
  if (new RegExp(`^${params.name}=`, 'm').test(text)) return
  const separator = text === '' || text.endsWith('\n') ? '' : '\n'
  await appendFile(path, `${separator}${params.name}=${params.value}\n`)
}

async function addVariables(command: Configure, store: StoreName): Promise<void> {
  const name = 'DURABLE_STORE'
  for (const file of ['.env', '.env.example']) {
    const path = command.app.makePath(file)
    if (file === '.env' || (await textOf(path)) !== '')
      await addVariable(path, { name, value: store })
  }
  await addVariable(command.app.makePath('.env.test'), { name, value: 'memory' })
}

async function extendPackageJson(command: Configure): Promise<void> {
  const path = command.app.makePath('package.json')
  const text = await textOf(path)
  if (text === '') return
  const extended = withWorkflowFolders(text)
  if (extended === text) return
  await writeFile(path, extended)
  command.logger.action('update package.json').succeeded()
}

async function mentionSqlite(command: Configure): Promise<void> {
  const config = await textOf(command.app.configPath('database.ts'))
  if (!config.includes('better-sqlite3')) return
  command.logger.info(
    'SQLite: the first process that uses durable switches the database file to write-ahead logging, which it keeps. Back ' +
      'it up together with its -wal file'
  )
}

/** Lucid generates models of the tables, and of none a file that does not compile. */
async function mentionEmptySchema(command: Configure): Promise<void> {
  if (!(await makesNoOtherTable(command))) return
  command.logger.info(
    'The application has no tables of its own, and of none Lucid generates a database/schema.ts that does not compile ' +
      '(TS6192). Until it has some, give the connection "schemaGeneration: { enabled: false }" in config/database.ts'
  )
}

/** Sets an application up: everything it needs for its first workflow. A second run changes nothing. */
export async function configure(command: Configure): Promise<void> {
  const store = await chooseStore(command)
  if (store === null) {
    command.exitCode = 1
    return
  }
  const codemods = await command.createCodemods()

  await codemods.makeUsingStub(stubsRoot, 'config/durable.stub', {})
  await codemods.makeUsingStub(stubsRoot, 'start/durable.stub', {})
  if (store === 'lucid') await publishMigration(command, stubsRoot)

  await codemods.updateRcFile((rcFile) => {
    rcFile.addProvider('@adonis-agora/durable/durable_provider')
    rcFile.addCommand('@adonis-agora/durable/commands')
    rcFile.addPreloadFile('#start/durable')
  })
  await addVariables(command, store)
  await codemods.defineEnvValidations({
    leadingComment: 'Variables for configuring @adonis-agora/durable',
    variables: { DURABLE_STORE: `Env.schema.enum.optional(['lucid', 'memory'] as const)` },
  })
  await extendPackageJson(command)

  if (store === 'lucid') {
    await mentionSqlite(command)
    await mentionEmptySchema(command)
  }
  const next = [
    ...(store === 'lucid' ? ['node ace migration:run'] : []),
    'node ace make:workflow greeting',
    'npm run dev',
    ...(store === 'lucid' ? [] : ['node ace durable:runs']),
  ]
  command.logger.info(`Next: ${next.map((line) => `"${line}"`).join(', ')}`)
}

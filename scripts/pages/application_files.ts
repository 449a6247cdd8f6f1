import { kitFiles } from '../../tests/docs/kit_files.ts'

const FOLDERS = ['config', 'start', 'supplied']
const APP_FOLDERS = ['fragments', 'services', 'workflows']

const manifest = {
  name: 'pages',
  private: true,
  type: 'module',
  imports: Object.fromEntries([
    ...FOLDERS.map((folder) => [`#${folder}/*`, `./${folder}/*.js`]),
    ...APP_FOLDERS.map((folder) => [`#${folder}/*`, `./app/${folder}/*.js`]),
  ]),
}

const rc = (preloads: string) => `import { defineConfig } from '@adonisjs/core/app'

export default defineConfig({
  commands: [() => import('@adonis-agora/durable/commands')],
  providers: [
    () => import('@adonisjs/core/providers/app_provider'),
    () => import('@adonisjs/lucid/database_provider'),
    () => import('@adonis-agora/durable/durable_provider'),
  ],
  preloads: [${preloads}],
})
`

/** Lines go to the standard output at once: what a killed process has said is not lost. */
const logger = `import { defineConfig } from '@adonisjs/core/logger'

export default defineConfig({
  default: 'app',
  loggers: { app: { enabled: true, name: 'pages', level: 'info' } },
})
`

/** Calls the engine, and the fragments of snippets, for the process that started it. */
const remote = `import 'reflect-metadata'
import { Ignitor } from '@adonisjs/core'
import { createDurableTables } from '@adonis-agora/durable'

const root = new URL('../', import.meta.url)
const app = new Ignitor(root, {
  importer: (path) => import(path.startsWith('.') ? new URL(path, root).href : path),
}).createApp('console')
await app.init()
await app.boot()
await app.start(() => {})
const db = await app.container.make('lucid.db')
const { schema } = db.connection()
createDurableTables(schema, { version: 1 })
await schema
const engine = await app.container.make('durable')

function plain(value: unknown): unknown {
  if (value instanceof Error) return { ...value, message: value.message }
  return JSON.parse(JSON.stringify(value ?? null))
}

interface Call {
  id: number
  method: string
  args: unknown[]
}

async function answer({ method, args }: Call): Promise<unknown> {
  if (method === 'fragment') {
    const path = '#fragments/fragment'
    const { fragment } = await import(path)
    return fragment(...args)
  }
  return Reflect.apply(Reflect.get(engine, method), engine, args)
}

process.on('message', (call: Call) => {
  answer(call).then(
    (value) => process.send!({ id: call.id, value: plain(value) }),
    (error) => process.send!({ id: call.id, error: String(error?.stack ?? error) })
  )
})
process.on('disconnect', () => void app.terminate().then(() => process.exit()))
process.send!({ id: 0 })
`

/** Files of an application on SQLite, by path, without those that a snippet gives it. */
export function applicationFiles(params: { hasPreload: boolean }): Record<string, string> {
  const kept = ['.env', 'bin/console.ts', 'start/env.ts', 'config/app.ts']
  const from = [...kept, 'config/encryption.ts', 'config/database.ts', 'config/hash.ts']
  return {
    ...Object.fromEntries(from.map((path) => [path, kitFiles[path]!])),
    '.env': kitFiles['.env']!.replace('NODE_ENV=development', 'NODE_ENV=production'),
    'package.json': JSON.stringify(manifest),
    'adonisrc.ts': rc(params.hasPreload ? "() => import('#start/durable')" : ''),
    'config/logger.ts': logger,
    'bin/remote.ts': remote,
  }
}

/** For applications whose snippet configures nothing: a run that kills its process twice ends dead. */
export const defaultConfiguration = `import { defineConfig } from '@adonis-agora/durable'

export default defineConfig({ maxRecoveryAttempts: 1 })
`

import type { Kernel } from '@adonisjs/core/ace'
import { IgnitorFactory } from '@adonisjs/core/factories'
import type { FileSystem } from '@japa/file-system'
import { pathToFileURL } from 'node:url'

/** The files of an application as the kits make them, as far as configuring touches them. */
export async function createKit(fs: FileSystem, params: { lucid: boolean }): Promise<void> {
  const lucid = params.lucid ? `() => import('@adonisjs/lucid/database_provider'),` : ''
  await fs.create('.env', 'PORT=3333\n')
  await fs.create('.env.example', 'PORT=\n')
  await fs.createJson('tsconfig.json', { compilerOptions: { module: 'NodeNext' } })
  await fs.create(
    'start/env.ts',
    `import { Env } from '@adonisjs/core/env'\n\nexport default await Env.create(new URL('../', import.meta.url), {\n  PORT: Env.schema.number(),\n})\n`
  )
  await fs.create(
    'adonisrc.ts',
    `import { defineConfig } from '@adonisjs/core/app'\n\nexport default defineConfig({\n  commands: [],\n  preloads: [() => import('#start/kernel')],\n  providers: [() => import('@adonisjs/core/providers/app_provider'), ${lucid}],\n})\n`
  )
  await fs.create(
    'package.json',
    '{\n  "name": "shop",\n  "imports": {\n    "#start/*": "./start/*.js"\n  },\n  "hotHook": {\n    "boundaries": ["./app/controllers/**/*.ts"]\n  }\n}\n'
  )
  if (params.lucid) {
    await fs.create('config/database.ts', `export default { client: 'better-sqlite3' }\n`)
  }
}

/** The kernel of the application in the temporary directory; it keeps what commands print. */
export async function kernelOf(fs: FileSystem): Promise<Kernel> {
  const ignitor = new IgnitorFactory()
    .withCoreProviders()
    .withCoreConfig()
    .create(pathToFileURL(`${fs.basePath}/`), { importer: (path) => import(path) })
  const app = ignitor.createApp('web')
  await app.init()
  await app.boot()
  const ace = await app.container.make('ace')
  ace.ui.switchMode('raw')
  return ace
}

/** What commands of the kernel have printed. */
export function printed(ace: Kernel): string {
  return ace.ui.logger
    .getLogs()
    .map(({ message }) => message)
    .join('\n')
}

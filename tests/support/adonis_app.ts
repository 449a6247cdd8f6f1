import { configProvider } from '@adonisjs/core'
import { IgnitorFactory } from '@adonisjs/core/factories'
import type { ApplicationService } from '@adonisjs/core/types'
import { pathToFileURL } from 'node:url'
import type { Store } from '../../src/contracts/store.ts'
import { defineConfig, type DurableConfig } from '../../src/define_config.ts'

interface AdonisAppParams {
  environment: 'web' | 'console' | 'repl' | 'test'
  mode?: 'warmup'
  durable?: DurableConfig
  /** Takes the place of the store that `durable` names. */
  store?: Store
  /** Before that of durable. */
  providers?: (() => Promise<any>)[]
  /** Beside that of durable. */
  config?: Record<string, unknown>
}

/** An application with the provider of durable, booted and not yet started. */
export async function adonisApp(
  basePath: string,
  { environment, mode, durable, store, providers = [], config }: AdonisAppParams
): Promise<ApplicationService> {
  const given = store && { store: configProvider.create(async () => () => store) }
  const app = new IgnitorFactory()
    .withCoreProviders()
    .withCoreConfig()
    .merge({
      rcFileContents: {
        providers: [...providers, () => import('../../providers/durable_provider.ts')],
      },
      config: { ...config, durable: defineConfig({ ...durable, ...given }) },
    })
    .create(pathToFileURL(`${basePath}/`), { importer: (path) => import(path) })
    .createApp(environment)
  if (mode) app.setMode(mode)
  await app.init()
  await app.boot()
  return app
}

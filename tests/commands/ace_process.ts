import { configProvider } from '@adonisjs/core'
import { IgnitorFactory } from '@adonisjs/core/factories'
import type { ApplicationService } from '@adonisjs/core/types'
import { once } from 'node:events'
import { pathToFileURL } from 'node:url'
import DurableWork from '../../commands/durable_work.ts'
import { defineConfig } from '../../src/define_config.ts'
import { WorkflowEngine } from '../../src/engine/engine.ts'
import { MemoryStore } from '../../src/stores/memory/memory_store.ts'

/** What is out of the ordinary in the application. */
export type AceCase =
  | 'duplicate route'
  | 'config of no defineConfig()'
  | 'SIGTERM in a step'
  | 'SIGTERM before it is ready'

/*
 * A process that runs "durable:work" as "node ace" does, in an application that ends at SIGTERM as a generated one.
 * Arguments: the application's directory, the case, then flags of the command.
 */
const [basePath = '', given, ...flags] = process.argv.slice(2)
const aceCase = given as AceCase
const terminated = Promise.withResolvers<void>()

async function prepare(app: ApplicationService): Promise<void> {
  switch (aceCase) {
    case 'duplicate route': {
      const router = await app.container.make('router')
      for (const path of ['/a', '/b']) router.get(path, () => {}).as('same')
      return
    }
    case 'SIGTERM in a step': {
      const engine = await app.container.make(WorkflowEngine)
      const ref = engine.register('ace_process.stuck', '1', (ctx) =>
        ctx.localStep('stuck', async (step) => {
          process.kill(process.pid, 'SIGTERM')
          await once(step.signal, 'abort')
          throw step.signal.reason
        })
      )
      await engine.start(ref, undefined)
      return
    }
    case 'SIGTERM before it is ready':
      process.kill(process.pid, 'SIGTERM')
      await terminated.promise
      return
    case 'config of no defineConfig()':
  }
}

const store = configProvider.create(async () => () => new MemoryStore())
const ignitor = new IgnitorFactory()
  .withCoreProviders()
  .withCoreConfig()
  .merge({
    rcFileContents: {
      providers: [() => import('../../providers/durable_provider.ts')],
      commands: [
        async () => ({
          getMetaData: async () => [DurableWork.serialize()],
          getCommand: async () => DurableWork,
        }),
      ],
    },
    config: {
      logger: { default: 'app', loggers: { app: { enabled: false } } },
      durable:
        aceCase === 'config of no defineConfig()'
          ? { leaseMs: 1 }
          : defineConfig({ store, drainMs: 20 }),
    },
  })
  .create(pathToFileURL(`${basePath}/`), { importer: (path) => import(path) })
ignitor.tap((app) => {
  app.listen('SIGTERM', () => void app.terminate().then(() => terminated.resolve()))
  void app.ready(() => prepare(app))
})
await ignitor.ace().handle(['durable:work', ...flags])

import { once } from 'node:events'
import DurableWork from '../../commands/durable_work.ts'
import { WorkflowEngine } from '../../src/engine/engine.ts'
import { MemoryStore } from '../../src/stores/memory/memory_store.ts'
import { adonisApp } from '../support/adonis_app.ts'

/*
 * A process that runs "durable:work" with one run in a step that ends only when it is aborted, and says `stuck` once it is in there.
 * Arguments: the application's directory, then flags of the command.
 */
const [basePath = '', ...flags] = process.argv.slice(2)
const app = await adonisApp(basePath, {
  environment: 'console',
  durable: { drainMs: Number(process.env.DRAIN_MS ?? 60_000) },
  store: new MemoryStore(),
  config: { logger: { default: 'app', loggers: { app: { enabled: false } } } },
})
await app.start(() => {})

const engine = await app.container.make(WorkflowEngine)
const listening = Promise.withResolvers<void>()
const ref = engine.register('work_process.stuck', '1', (ctx) =>
  ctx.localStep('stuck', async (step) => {
    await listening.promise
    process.stdout.write('stuck\n')
    await once(step.signal, 'abort')
  })
)
await engine.start(ref, undefined, 'stuck')
const ace = await app.container.make('ace')
const command = await ace.create(DurableWork, flags)
await command.exec()
// Hooks run last in, first out: this one before the command's own, which drains.
app.terminating(() => {
  process.stdout.write('terminating\n')
})
listening.resolve()

import type { ApplicationService } from '@adonisjs/core/types'
import { test } from '@japa/runner'
import type { TestContext } from '@japa/runner/core'
import { BaseWorkflow, workflowRef } from '../../src/base_workflow.ts'
import type { DurableConfig } from '../../src/define_config.ts'
import { WorkflowEngine } from '../../src/engine/engine.ts'
import { FatalError } from '../../src/errors.ts'
import { EmbeddedWorker } from '../../src/worker/embedded_worker.ts'
import { DurableApp } from '../support/durable_app.ts'
import { Gate } from '../support/gate.ts'
import { HotReload } from '../support/hot_reload.ts'
import { until } from '../support/until.ts'
import { adonisApp } from '../support/adonis_app.ts'
import { RecordingStore } from './recording_store.ts'

type Environment = 'web' | 'console' | 'repl' | 'test'

class Greeting extends BaseWorkflow {
  static override workflow = { name: 'provider.greeting' }
  async run(_: unknown, name: string) {
    return `Hello ${name}`
  }
}

/** An application with the provider, booted and not yet started. */
async function bootApp(
  { fs, cleanup }: Pick<TestContext, 'fs' | 'cleanup'>,
  params: {
    environment: Environment
    nodeEnv?: string
    mode?: 'warmup'
    config?: DurableConfig
    providers?: (() => Promise<any>)[]
  }
): Promise<{ app: ApplicationService; store: RecordingStore }> {
  const store = new RecordingStore()
  const nodeEnv = process.env.NODE_ENV
  process.env.NODE_ENV = params.nodeEnv ?? 'production'
  cleanup(() => {
    if (nodeEnv === undefined) delete process.env.NODE_ENV
    else process.env.NODE_ENV = nodeEnv
  })
  const { environment, mode, config, providers = [] } = params
  const app = await adonisApp(fs.basePath, {
    environment,
    providers,
    ...(mode && { mode }),
    durable: { store: store.provider(), ...config },
  })
  cleanup(() => app.terminate())
  return { app, store }
}

test.group('DurableProvider | lifecycle', () => {
  const embedded = { worker: { embedded: true } }

  for (const { title, runsWorker, ...params } of [
    { title: 'web', environment: 'web', runsWorker: false },
    {
      title: 'web with an embedded worker',
      environment: 'web',
      config: embedded,
      runsWorker: true,
    },
    { title: 'warmup', environment: 'web', mode: 'warmup', config: embedded, runsWorker: false },
    { title: 'console', environment: 'console', config: embedded, runsWorker: false },
    { title: 'repl', environment: 'repl', config: embedded, runsWorker: false },
    { title: 'test', environment: 'test', nodeEnv: 'test', config: embedded, runsWorker: false },
    {
      title: 'web in the test environment',
      environment: 'web',
      nodeEnv: 'test',
      config: embedded,
      runsWorker: false,
    },
  ] as const) {
    const does = runsWorker ? 'runs a worker once it is ready, and not before' : 'touches no store'
    test(`${title}: ${does}`, async ({ assert, fs, cleanup }) => {
      const { app, store } = await bootApp({ fs, cleanup }, params)
      const engine = await app.container.make('durable')
      assert.instanceOf(engine, WorkflowEngine)
      assert.deepEqual(store.calls, [])

      if ('mode' in params) await app.warmUp()
      else await app.start(() => assert.deepEqual(store.calls, []))
      assert.equal(store.calls.includes('registerWorker'), runsWorker)
      if (!runsWorker) assert.deepEqual(store.calls, [])

      await app.terminate()
      const ended = ['make', 'open', 'registerWorker', 'removeWorker', 'close']
      assert.deepEqual([...new Set(store.calls)], runsWorker ? ended : [])
    })
  }

  test('the class and the alias are one engine', async ({ assert, fs, cleanup }) => {
    const { app } = await bootApp({ fs, cleanup }, { environment: 'console' })
    assert.strictEqual(
      await app.container.make('durable'),
      await app.container.make(WorkflowEngine)
    )
  })

  test('a console process that starts a run opens the store, and closes it at the end', async ({
    assert,
    fs,
    cleanup,
  }) => {
    const { app, store } = await bootApp({ fs, cleanup }, { environment: 'console' })
    await app.start(() => {})
    const { runId } = await Greeting.dispatch('Ada')
    const engine = await app.container.make('durable')
    const run = await engine.getRun(runId)
    assert.equal(run?.status, 'pending')
    await app.terminate()
    assert.notInclude(store.calls, 'registerWorker')
    assert.equal(store.calls.at(-1), 'close')
  })

  test('an embedded worker executes what a request starts', async ({ assert, fs, cleanup }) => {
    const config = { worker: { embedded: true } }
    const { app } = await bootApp({ fs, cleanup }, { environment: 'web', config })
    await app.start(() => {})
    assert.equal(await Greeting.start('Ada'), 'Hello Ada')
  })

  test('OE-40: an embedded worker looks once it has started for failure routes that nobody serves, and no other process does', async ({
    assert,
    fs,
    cleanup,
  }) => {
    for (const runsWorker of [false, true]) {
      const config = { worker: { embedded: runsWorker } }
      const { app, store } = await bootApp({ fs, cleanup }, { environment: 'web', config })
      const engine = await app.container.make('durable')
      const onError = [{ workflow: 'provider.mistyped' }]
      engine.register('provider.routed', '1', async () => {}, { onError })
      await app.start(() => assert.deepEqual(store.calls, []))
      if (runsWorker) await until(() => store.calls.includes('listWorkers'))
      else assert.deepEqual(store.calls, [])
      await app.terminate()
    }
  })

  test('an embedded worker says what it executes, and logs which runs fail', async ({
    assert,
    fs,
    cleanup,
  }) => {
    const config = { worker: { embedded: true } }
    const environment = { environment: 'web', nodeEnv: 'development', config } as const
    const { app } = await bootApp({ fs, cleanup }, environment)
    const logger = await app.container.make('logger')
    const lines: unknown[][] = []
    logger.info = (...args: unknown[]) => void lines.push(['info', ...args])
    logger.error = (...args: unknown[]) => void lines.push(['error', ...args])
    await app.start(() => {})
    const engine = await app.container.make('durable')
    const ref = engine.register('provider.fails', '1', async () => {
      throw new FatalError('none left', 'no_stock')
    })
    await engine.start(ref, undefined, 'a')
    await engine.waitForRun('a')
    await Greeting.start('Ada')
    assert.match(String(lines[0]?.[1]), /^durable worker ".*" \(pid \d+\), store: memory/)
    assert.deepEqual(lines.slice(1), [
      ['error', 'run failed: provider.fails a: no_stock: none left'],
    ])
  })

  test('in development an embedded worker executes a workflow whose file is new, started elsewhere', async ({
    assert,
    fs,
    cleanup,
  }) => {
    const config = { worker: { embedded: true } }
    const nodeEnv = 'development'
    const { app, store } = await bootApp({ fs, cleanup }, { environment: 'web', nodeEnv, config })
    await app.start(() => {})
    const another = new DurableApp({ store })
    const target = workflowRef<undefined, string>('provider.late', '1')
    const { runId } = await another.engine.start(target, undefined)
    const base = JSON.stringify(new URL('../../src/base_workflow.ts', import.meta.url).href)
    await fs.create(
      'app/workflows/late_for_provider.ts',
      `import { BaseWorkflow } from ${base}
       export default class Late extends BaseWorkflow {
         static workflow = { name: 'provider.late' }
         async run() { return 'found' }
       }`
    )
    const engine = await app.container.make('durable')
    const { output } = await engine.waitForRun(runId, { timeoutMs: 8_000 })
    assert.equal(output, 'found')
  }).timeout(10_000)

  test('in development a run blocked by a foreign await goes on when hot reload replaces what its workflow imports', async ({
    assert,
    fs,
    cleanup,
  }) => {
    const hotReload = new HotReload(fs.basePath)
    cleanup(() => hotReload.stop())
    const base = JSON.stringify(new URL('../../src/base_workflow.ts', import.meta.url).href)
    const wait = (value: string) => fs.create('app/wait.ts', `export const wait = () => ${value}`)
    await wait('new Promise((resolve) => setTimeout(resolve))')
    await fs.create(
      'app/workflows/waiting_for_provider.ts',
      `import { BaseWorkflow } from ${base}
       import { wait } from '../wait.ts'
       export default class Waiting extends BaseWorkflow {
         static workflow = { name: 'provider.waiting' }
         async run() {
           await wait()
           return 'fixed'
         }
       }`
    )
    const params = { nodeEnv: 'development', config: { worker: { embedded: true } } }
    const { app } = await bootApp({ fs, cleanup }, { environment: 'web', ...params })
    await app.start(() => {})
    const engine = await app.container.make('durable')
    const target = workflowRef<undefined, string>('provider.waiting', '1')
    const blocked = new Promise((resolve) => engine.on('run.blocked', resolve))
    const { runId } = await engine.start(target, undefined)
    await blocked
    await wait('null')
    // Not by waiting for the run, which in development ends with the error of a blocked one.
    const completed = new Promise((resolve) => engine.on('run.completed', resolve))
    hotReload.replace()
    await completed
    const run = await engine.getRun(runId)
    assert.equal(run?.output, 'fixed')
  }).timeout(10_000)

  test('a worker that cannot start leaves the server running, and says why', async ({
    assert,
    fs,
    cleanup,
  }) => {
    await fs.create('app/workflows/broken_for_provider.ts', 'throw new Error("no tariff")')
    const config = { worker: { embedded: true } }
    const { app, store } = await bootApp({ fs, cleanup }, { environment: 'web', config })
    const logger = await app.container.make('logger')
    const messages: unknown[] = []
    logger.error = (...args: unknown[]) => messages.push(args)
    await app.start(() => {})
    assert.isTrue(app.isReady)
    assert.notInclude(store.calls, 'registerWorker')
    assert.lengthOf(messages, 1)
  })

  test('an embedded worker is not started once its application was ended, though the boot goes on', async ({
    assert,
    fs,
    cleanup,
  }) => {
    const gate = new Gate()
    class SlowProvider {
      ready = () => gate.pass()
    }
    const config = { worker: { embedded: true } }
    const providers = [async () => ({ default: SlowProvider })]
    const { app, store } = await bootApp({ fs, cleanup }, { environment: 'web', config, providers })
    const starting = app.start(() => {})
    await gate.reached()
    await app.terminate()
    gate.open()
    await starting
    assert.deepEqual(store.calls, [])
  })

  test('the application ends though neither its worker nor its store can be closed, and says why', async ({
    assert,
    fs,
    cleanup,
  }) => {
    const config = { worker: { embedded: true } }
    const { app, store } = await bootApp({ fs, cleanup }, { environment: 'web', config })
    const logger = await app.container.make('logger')
    const logged: unknown[] = []
    logger.error = (facts: unknown) => void logged.push(facts)
    await app.start(() => {})
    const { stop } = EmbeddedWorker.prototype
    cleanup(() => void (EmbeddedWorker.prototype.stop = stop))
    const [first, second] = [new Error('the worker'), new Error('the store')]
    EmbeddedWorker.prototype.stop = async function () {
      await stop.call(this)
      throw first
    }
    store.close = () => Promise.reject(second)
    await app.terminate()
    assert.isTrue(app.isTerminated)
    assert.deepEqual(logged, [{ err: first }, { err: second }])
    await assert.rejects(() => Greeting.dispatch('Ada'), /durable_provider/)
  })
})

test.group('DurableProvider | configuration', () => {
  test('what the application leaves out has its default', async ({ assert, fs, cleanup }) => {
    const { app } = await bootApp({ fs, cleanup }, { environment: 'console' })
    const { options } = await app.container.make('durable.config')
    assert.isFalse(options.worker.embedded)
    assert.equal(options.leaseMs, 30_000)
  })

  test('the default store needs Lucid, and says so when it is first used', async ({
    assert,
    fs,
    cleanup,
  }) => {
    const config = { store: undefined }
    const { app } = await bootApp({ fs, cleanup }, { environment: 'console', config })
    const engine = await app.container.make('durable')
    await assert.rejects(() => engine.listRuns(), /"store".*stores\.lucid\(\) needs Lucid/)
  })
})

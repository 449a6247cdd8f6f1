import { test } from '@japa/runner'
import type { TestContext } from '@japa/runner/core'
import DurableWork from '../../commands/durable_work.ts'
import type { NewWorker } from '../../src/contracts/store.ts'
import { MemoryStore } from '../../src/stores/memory/memory_store.ts'
import { isUnderDevelopmentServer } from '../../src/worker/development_server.ts'
import { adonisApp } from '../support/adonis_app.ts'

/** Keeps how workers announce themselves, and counts their passes of recovery. */
class AnnouncedStore extends MemoryStore {
  readonly workers: NewWorker[] = []
  readonly recovered = Promise.withResolvers<void>()

  override registerWorker(worker: NewWorker) {
    this.workers.push(worker)
    return super.registerWorker(worker)
  }

  override recoverExpired(params = {}) {
    this.recovered.resolve()
    return super.recoverExpired(params)
  }
}

function setEnv(cleanup: TestContext['cleanup'], env: Record<string, string>): void {
  for (const [name, value] of Object.entries(env)) {
    const before = process.env[name]
    process.env[name] = value
    cleanup(() => {
      if (before === undefined) delete process.env[name]
      else process.env[name] = before
    })
  }
}

async function bootApp(
  { fs, cleanup }: Pick<TestContext, 'fs' | 'cleanup'>,
  environment: 'web' | 'console'
) {
  const store = new AnnouncedStore()
  const durable = { leaseMs: 200, worker: { embedded: true } }
  const app = await adonisApp(fs.basePath, { environment, durable, store })
  cleanup(() => app.terminate())
  await app.start(() => {})
  return { app, store }
}

test.group('Workers under the development server', () => {
  test('DL-10: it is told by DEV_MODE=true, which it sets for the process it starts')
    .with([
      { env: { DEV_MODE: 'true' }, is: true },
      { env: { DEV_MODE: 'false' }, is: false },
      { env: {}, is: false },
      { env: { NODE_ENV: 'development' }, is: false },
    ])
    .run(({ assert }, { env, is }) => {
      assert.equal(isUnderDevelopmentServer(env), is)
    })

  for (const mode of ['true', 'false'])
    test(`DL-10, DL-2: with DEV_MODE=${mode} an embedded worker announces that its runs are ${mode === 'true' ? 'not ' : ''}counted, and recovers`, async ({
      assert,
      fs,
      cleanup,
    }) => {
      setEnv(cleanup, { DEV_MODE: mode, NODE_ENV: 'development' })
      const { store } = await bootApp({ fs, cleanup }, 'web')
      assert.deepEqual(
        store.workers.map(({ isCounted }) => isCounted),
        [mode !== 'true']
      )
      await store.recovered.promise
    })

  for (const mode of ['true', 'false'])
    test(`DL-10, DL-2: so does durable:work with DEV_MODE=${mode}`, async ({
      assert,
      fs,
      cleanup,
    }) => {
      setEnv(cleanup, { DEV_MODE: mode })
      const { app, store } = await bootApp({ fs, cleanup }, 'console')
      const ace = await app.container.make('ace')
      ace.ui.switchMode('raw')
      const command = await ace.create(DurableWork, ['--quiet'])
      await command.exec()
      assert.deepEqual(
        store.workers.map(({ isCounted }) => isCounted),
        [mode !== 'true']
      )
      await store.recovered.promise
    })
})

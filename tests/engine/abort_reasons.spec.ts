import { setImmediate as nextRound } from 'node:timers/promises'
import { test } from '@japa/runner'
import { AbortError, FatalError } from '../../src/errors.ts'
import type { GivenOptions } from '../../src/options.ts'
import { MemoryDatabase } from '../../src/stores/memory/memory_database.ts'
import { MemoryStore } from '../../src/stores/memory/memory_store.ts'
import type { WorkflowCtx } from '../../src/types/context.ts'
import type { StepContext } from '../../src/types/step.ts'
import { Connection } from '../support/connection.ts'
import { Gate } from '../support/gate.ts'
import { until } from '../support/until.ts'
import { DurableApp } from '../support/durable_app.ts'

const HOUR = 3_600_000
/** No clock that a test moves ends it. */
const LONG_LEASE = { leaseMs: 10 * HOUR, hangMs: 11 * HOUR }
const LEASE_MS = 300
const MAIN = { name: 'main', version: '1' }

test.group('The reason of an abort', (group) => {
  let database: MemoryDatabase
  let apps: DurableApp[]
  let begun: Gate
  let reason: PromiseWithResolvers<unknown>
  group.each.setup(() => {
    database = new MemoryDatabase()
    apps = []
    begun = new Gate()
    reason = Promise.withResolvers()
    return async () => void (await Promise.all(apps.map((app) => app.close())))
  })

  function appOn(store: Connection['store'], options: GivenOptions = LONG_LEASE): DurableApp {
    const app = new DurableApp({ store, options: { drainMs: 1, ...options } })
    apps.push(app)
    return app
  }

  const newApp = (options?: GivenOptions) => appOn(new MemoryStore(database), options)

  /** A step that ends when it is aborted, with the reason as its own failure, as `fetch` does. */
  const heeds = async ({ signal }: StepContext) => {
    await begun.pass(signal).catch((error: unknown) => {
      reason.resolve(error)
      throw error
    })
  }

  /** Heeds the signal of the body in place of that of a step. */
  function heed(ctx: WorkflowCtx): void {
    ctx.abortSignal.addEventListener('abort', () => reason.resolve(ctx.abortSignal.reason))
  }

  /** Starts a run, and returns once its step is at work. */
  async function atWork(app: DurableApp, body: (ctx: WorkflowCtx) => unknown) {
    app.engine.register('main', '1', body)
    const worker = await app.work()
    const { runId } = await app.engine.start(MAIN)
    await begun.reached()
    return { worker, runId }
  }

  /** Starts a run whose body waits, and returns once that is kept in memory. */
  async function waiting(app: DurableApp) {
    app.engine.register('main', '1', (ctx) => {
      heed(ctx)
      return ctx.waitForSignal('never')
    })
    const worker = await app.work()
    const { runId } = await app.engine.start(MAIN)
    await worker.whenIdle()
    return { worker, runId }
  }

  test('is step_timeout when the attempt has taken too long, and that is what it fails with', async ({
    assert,
  }) => {
    const app = newApp()
    const { runId } = await atWork(app, (ctx) =>
      ctx.localStep('slow', heeds, { timeoutMs: 5, retries: 0 })
    )
    const error = await reason.promise
    assert.instanceOf(error, AbortError)
    assert.propertyVal(error, 'code', 'step_timeout')
    const run = await app.engine.waitForRun(runId)
    assert.deepEqual([run.status, run.errorCode], ['failed', 'step_timeout'])
  })

  test('is worker_stopping when its worker stops, and nothing is recorded', async ({ assert }) => {
    const app = newApp()
    const { worker, runId } = await atWork(app, (ctx) => ctx.localStep('slow', heeds))
    await worker.stop()
    assert.propertyVal(await reason.promise, 'code', 'worker_stopping')
    const history = await app.engine.getHistory(runId)
    assert.isEmpty(history?.records)
  })

  test('is worker_stopping for the body of a run that executes', async ({ assert }) => {
    const { worker } = await atWork(newApp(), (ctx) => {
      heed(ctx)
      return ctx.localStep('slow', ({ signal }) => begun.pass(signal))
    })
    await worker.stop()
    assert.propertyVal(await reason.promise, 'code', 'worker_stopping')
  })

  test('is worker_stopping for the body of a run that waits', async ({ assert }) => {
    const { worker } = await waiting(newApp())
    await worker.stop()
    assert.propertyVal(await reason.promise, 'code', 'worker_stopping')
  })

  test('is lease_lost when another worker may have the run', async ({ assert }) => {
    const app = newApp({ leaseMs: LEASE_MS })
    await atWork(app, (ctx) => ctx.localStep('slow', heeds))
    await until(async () => {
      await app.engine.advanceClock(LEASE_MS)
      const { workers } = await app.engine.recoverIncomplete()
      return workers === 1
    })
    assert.propertyVal(await reason.promise, 'code', 'lease_lost')
    begun.open()
  })

  test('is lease_lost when all that tells of a cancel is a write that is refused', async ({
    assert,
    cleanup,
  }) => {
    const connection = new Connection(new MemoryStore(database))
    cleanup(() => connection.thaw())
    connection.freeze(['heldBy'])
    const cancelled = new Gate()
    const { runId } = await atWork(appOn(connection.store), (ctx) =>
      Promise.all([ctx.localStep('slow', heeds), ctx.localStep('other', () => cancelled.pass())])
    )
    await cancelled.reached()
    await newApp().engine.cancel(runId)
    cancelled.open()
    assert.propertyVal(await reason.promise, 'code', 'lease_lost')
  })

  test('is cancelled when the run is cancelled', async ({ assert }) => {
    const app = newApp()
    const { runId } = await atWork(app, (ctx) => ctx.localStep('slow', heeds))
    assert.isTrue(await app.engine.cancel(runId))
    assert.propertyVal(await reason.promise, 'code', 'cancelled')
  })

  test('is cancelled when the execution time of the run is over', async ({ assert }) => {
    const app = newApp()
    app.engine.register('short', '1', (ctx) => ctx.localStep('slow', heeds), {
      executionTimeout: '1m',
    })
    await app.work()
    await app.engine.start({ name: 'short', version: '1' })
    await begun.reached()
    await app.engine.advanceClock(60_000)
    assert.propertyVal(await reason.promise, 'code', 'cancelled')
  })

  test('is turn_over when the body has ended without waiting for it', async ({ assert }) => {
    const app = newApp()
    const { runId } = await atWork(app, (ctx) =>
      Promise.race([ctx.localStep('slow', heeds), ctx.localStep('fast', () => begun.reached())])
    )
    assert.propertyVal(await reason.promise, 'code', 'turn_over')
    const run = await app.engine.waitForRun(runId)
    assert.equal(run.status, 'completed')
  })

  test('is turn_over when the body has failed beside it, and the step is undone', async ({
    assert,
  }) => {
    const app = newApp()
    const undone: string[] = []
    const { runId } = await atWork(app, (ctx) =>
      Promise.all([
        ctx.localStep('slow', heeds, { compensate: () => void undone.push('slow') }),
        ctx.localStep('fails', async () => {
          await begun.reached()
          throw new FatalError('no')
        }),
      ])
    )
    assert.propertyVal(await reason.promise, 'code', 'turn_over')
    const run = await app.engine.waitForRun(runId)
    assert.deepEqual([run.status, undone], ['failed', ['slow']])
  })

  test('is turn_over when the run is blocked', async ({ assert }) => {
    const app = newApp()
    const { runId } = await atWork(app, (ctx) =>
      Promise.all([
        ctx.localStep('slow', heeds),
        ctx
          .localStep('fast', () => begun.reached())
          .then(async () => {
            await nextRound()
            await ctx.localStep('after something foreign', () => {})
          }),
      ])
    )
    assert.propertyVal(await reason.promise, 'code', 'turn_over')
    const run = await app.engine.getRun(runId)
    assert.equal(run?.status, 'blocked')
  })

  test('is turn_over for the body of a run that is no longer kept in memory', async ({
    assert,
  }) => {
    const app = newApp({ ...LONG_LEASE, residentRuns: 1 })
    const { worker } = await waiting(app)
    app.engine.register('other', '1', (ctx) => ctx.waitForSignal('never'))
    await app.engine.start({ name: 'other', version: '1' })
    await worker.whenIdle()
    assert.propertyVal(await reason.promise, 'code', 'turn_over')
  })
})

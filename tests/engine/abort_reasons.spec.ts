import { test } from '@japa/runner'
import { AbortError } from '../../src/errors.ts'
import { MemoryDatabase } from '../../src/stores/memory/memory_database.ts'
import { MemoryStore } from '../../src/stores/memory/memory_store.ts'
import type { WorkflowCtx } from '../../src/types/context.ts'
import type { StepContext } from '../../src/types/step.ts'
import { Gate } from '../support/gate.ts'
import { until } from '../support/until.ts'
import { DurableApp } from '../support/durable_app.ts'

const LEASE_MS = 300
const MAIN = { name: 'main', version: '1' }

test.group('The reason of an aborted step', (group) => {
  let store: MemoryStore
  let app: DurableApp
  let begun: Gate
  let reason: PromiseWithResolvers<unknown>
  group.each.setup(() => {
    store = new MemoryStore(new MemoryDatabase())
    app = new DurableApp({ store, options: { leaseMs: LEASE_MS, drainMs: 1 } })
    begun = new Gate()
    reason = Promise.withResolvers()
    return () => app.close()
  })

  /** Ends when it is aborted, with the reason as its own failure, as `fetch` does. */
  const heeds = async ({ signal }: StepContext) => {
    await begun.pass(signal).catch((error: unknown) => {
      reason.resolve(error)
      throw error
    })
  }

  /** Starts a run, and returns once its step is at work. */
  async function atWork(body: (ctx: WorkflowCtx) => unknown) {
    app.engine.register('main', '1', body)
    const worker = await app.work()
    const { runId } = await app.engine.start(MAIN)
    await begun.reached()
    return { worker, runId }
  }

  test('is step_timeout when the attempt has taken too long, and that is what it fails with', async ({
    assert,
  }) => {
    const { runId } = await atWork((ctx) =>
      ctx.localStep('slow', heeds, { timeoutMs: 5, retries: 0 })
    )
    const error = await reason.promise
    assert.instanceOf(error, AbortError)
    assert.propertyVal(error, 'code', 'step_timeout')
    const run = await app.engine.waitForRun(runId)
    assert.deepEqual([run.status, run.errorCode], ['failed', 'step_timeout'])
  })

  test('is worker_stopping when its worker stops, and nothing is recorded', async ({ assert }) => {
    const { worker, runId } = await atWork((ctx) => ctx.localStep('slow', heeds))
    await worker.stop()
    assert.propertyVal(await reason.promise, 'code', 'worker_stopping')
    const history = await app.engine.getHistory(runId)
    assert.isEmpty(history?.records)
  })

  test('is lease_lost when another worker may have the run', async ({ assert }) => {
    await atWork((ctx) => ctx.localStep('slow', heeds))
    await until(async () => {
      await app.engine.advanceClock(LEASE_MS)
      const { workers } = await app.engine.recoverIncomplete()
      return workers === 1
    })
    assert.propertyVal(await reason.promise, 'code', 'lease_lost')
    begun.open()
  })

  test('is cancelled when the run is cancelled', async ({ assert }) => {
    const { runId } = await atWork((ctx) => ctx.localStep('slow', heeds))
    assert.isTrue(await app.engine.cancel(runId))
    assert.propertyVal(await reason.promise, 'code', 'cancelled')
  })

  test('is cancelled when the execution time of the run is over', async ({ assert }) => {
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
    const { runId } = await atWork((ctx) =>
      Promise.race([ctx.localStep('slow', heeds), ctx.localStep('fast', () => begun.reached())])
    )
    assert.propertyVal(await reason.promise, 'code', 'turn_over')
    const run = await app.engine.waitForRun(runId)
    assert.equal(run.status, 'completed')
  })
})

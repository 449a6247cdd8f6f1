import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setImmediate as nextImmediate, setTimeout as delay } from 'node:timers/promises'
import { test } from '@japa/runner'
import type { WorkflowRun } from '../../src/engine/workflow_run.ts'
import type { WorkflowCtx } from '../../src/types/context.ts'
import { DurableApp } from '../support/durable_app.ts'
import { until } from '../support/until.ts'
import { Deployments } from './deployments.ts'

test.group('Awaiting what ctx did not give', (group) => {
  let deployments: Deployments
  group.each.setup(() => {
    deployments = new Deployments()
    return () => deployments.close()
  })

  /** What becomes of a run of `main`, which is known to come to something. */
  async function outcome(main: (ctx: WorkflowCtx) => unknown): Promise<WorkflowRun> {
    const over = Promise.withResolvers<void>()
    const { engine } = await deployments.deploy({ main })
    for (const event of ['run.blocked', 'run.failed', 'run.completed'] as const)
      engine.on(event, () => over.resolve())
    await engine.start('main', undefined, 'run')
    await over.promise
    return deployments.rest()
  }

  const fetched = async () => {
    const server = createServer((_, response) => response.end('{}'))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    const response = await fetch(`http://127.0.0.1:${port}`)
    await response.text()
    server.close()
    server.closeAllConnections()
  }
  const waits: Record<string, () => Promise<unknown>> = {
    'setImmediate': () => nextImmediate(),
    'setTimeout': () => delay(1),
    'fetch': fetched,
    'the first import of a module that awaits something itself': () => import('./cold_module.ts'),
  }
  for (const [what, wait] of Object.entries(waits)) {
    test(`an operation after ${what} is found at the first execution, and blocks the run before it does anything`, async ({
      assert,
    }) => {
      const calls: string[] = []
      const run = await outcome(async (ctx) => {
        await wait()
        await ctx.localStep('charge', () => void calls.push('charge'))
      })
      assert.equal(run.status, 'blocked')
      assert.equal(run.error!.code, 'foreign_await')
      for (const part of ['local_step "charge"', 'ctx.localStep()', 'await'])
        assert.include(run.error!.message, part)
      assert.deepEqual(calls, [])
      assert.deepEqual(await deployments.records(), [])
    })
  }

  test('an end of the body after a foreign await is found too', async ({ assert }) => {
    const run = await outcome(async (ctx) => {
      await ctx.localStep('a', () => 1)
      await nextImmediate()
      return 'done'
    })
    assert.equal(run.status, 'blocked')
    assert.equal(run.error!.code, 'foreign_await')
    assert.include(run.error!.message, 'The body ended')
  })

  test('a determined value after a foreign await is found too', async ({ assert }) => {
    const run = await outcome(async (ctx) => {
      await nextImmediate()
      return ctx.now()
    })
    assert.equal(run.error!.code, 'foreign_await')
  })

  test('what it awaited is not awaited again before a day has passed or a worker starts', async ({
    assert,
  }) => {
    const run = await outcome(async (ctx) => {
      await nextImmediate()
      return ctx.now()
    })
    assert.isAtLeast(run.dueAt! - run.updatedAt, 86_000_000)
  })

  test('microtasks, nextTick and promises that ctx gave are awaited at will', async ({
    assert,
  }) => {
    const run = await outcome(async (ctx) => {
      for (let count = 0; count < 100; count++) await null
      await new Promise<void>((resolve) => queueMicrotask(resolve))
      await new Promise<void>((resolve) => process.nextTick(resolve))
      const a = ctx.localStep('a', () => 1)
      const b = a.then((value) => value + 1)
      const values = await Promise.all([a, b, Promise.resolve(3)])
      return values.join()
    })
    assert.equal(run.output, '1,2,3')
  })

  test('a body that is fixed goes on where it stood', async ({ assert }) => {
    const calls: string[] = []
    await outcome(async (ctx) => {
      await ctx.localStep('a', () => void calls.push('a'))
      await nextImmediate()
      await ctx.localStep('b', () => void calls.push('b'))
    })
    await deployments.deploy({
      main: async (ctx) => {
        await ctx.localStep('a', () => void calls.push('a'))
        await ctx.localStep('b', () => void calls.push('b'))
      },
    })
    const run = await deployments.advance(3_600_000)
    assert.equal(run.status, 'completed')
    assert.deepEqual(calls, ['a', 'b'])
  })
})

test.group('Awaiting what ctx did not give | development', () => {
  test('what it awaited is awaited again once code was replaced, and not before', async ({
    assert,
    cleanup,
  }) => {
    const app = new DurableApp({ inDevelopment: true })
    cleanup(() => app.close())
    let effects = 0
    app.engine.register('main', '1', async (ctx) => {
      effects++
      await nextImmediate()
      return ctx.now()
    })
    const worker = await app.work()
    await app.engine.start('main', undefined, 'run')
    await worker.whenIdle()
    await app.engine.advanceClock(3_600_000)
    await worker.whenIdle()
    assert.equal(effects, 1)
    app.registry.reloaded()
    await until(() => effects === 2)
    await worker.whenIdle()
    await app.engine.advanceClock(3_600_000)
    await worker.whenIdle()
    assert.equal(effects, 2)
  })

  test('a body of code that was replaced while it awaited is executed again soon', async ({
    assert,
    cleanup,
  }) => {
    const app = new DurableApp({ inDevelopment: true })
    cleanup(() => app.close())
    const gate = Promise.withResolvers<void>()
    const began = Promise.withResolvers<void>()
    let main = async (ctx: WorkflowCtx) => {
      began.resolve()
      await gate.promise
      await nextImmediate()
      return ctx.now().toISOString()
    }
    app.engine.register('main', '1', (ctx) => main(ctx))
    const worker = await app.work()
    const blocked = new Promise((resolve) => app.engine.on('run.blocked', resolve))
    await app.engine.start('main', undefined, 'run')
    await began.promise
    main = async () => 'fixed'
    app.registry.reloaded()
    gate.resolve()
    await blocked
    await worker.whenIdle()
    await app.engine.advanceClock(2_000)
    await worker.whenIdle()
    assert.equal((await app.engine.getRun('run'))!.output, 'fixed')
  })

  test('a run that does not fit the code is still tried again every 2 seconds', async ({
    assert,
    cleanup,
  }) => {
    const app = new DurableApp({ inDevelopment: true })
    cleanup(() => app.close())
    let attempts = 0
    app.engine.register('main', '1', async (ctx) => {
      await ctx.localStep(`step-${attempts++}`, () => 1)
      await ctx.waitForSignal('never')
    })
    const worker = await app.work()
    await app.engine.start('main', undefined, 'run')
    await worker.whenIdle()
    assert.equal((await app.engine.getRun('run'))!.status, 'suspended')
    attempts = 5
    await app.engine.signal('never', 1)
    await worker.whenIdle()
    const run = (await app.engine.getRun('run'))!
    assert.equal(run.error!.code, 'non_determinism')
    assert.isAtMost(run.dueAt! - run.updatedAt, 2_000)
  })
})

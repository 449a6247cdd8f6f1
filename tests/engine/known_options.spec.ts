import { test } from '@japa/runner'
import { defineStep } from '../../src/step.ts'
import type { WorkflowCtx } from '../../src/types/context.ts'
import { DurableApp } from './durable_app.ts'

/** As code without types passes them. */
const options = (given: object) => given as never

test.group('Options that nobody reads', () => {
  const calls: Record<string, (app: DurableApp) => Promise<unknown>> = {
    'There is no option "runid" of engine.start(). Did you mean "runId"?': ({ engine }) =>
      engine.start('echo', null, options({ runid: 'r1' })),
    'There is no option "stauts" of engine.listRuns(). Did you mean "status"?': ({ engine }) =>
      engine.listRuns(options({ stauts: 'failed' })),
    'There is no option "dedupe" of engine.signal(). Known are id': ({ engine }) =>
      engine.signal('go', null, options({ dedupe: 'x' })),
    'There is no option "compensated" of engine.cancel(). Did you mean "compensate"?': ({
      engine,
    }) => engine.cancel('r1', options({ compensated: true })),
    'There is no option "timeout" of engine.waitForRun(). Did you mean "timeoutMs"?': ({
      engine,
    }) => engine.waitForRun('r1', options({ timeout: 5 })),
    'There is no option "retrys" of step "x". Did you mean "retries"?': async () =>
      defineStep('x', () => 0, options({ retrys: 1 })),
  }
  for (const [message, call] of Object.entries(calls)) {
    test(message, async ({ assert, cleanup }) => {
      const app = new DurableApp()
      cleanup(() => app.close())
      app.engine.register('echo', '1', async (_, input) => input)
      const error = await call(app).catch((reason: unknown) => reason)
      assert.propertyVal(error, 'code', 'E_UNKNOWN_OPTION')
      assert.propertyVal(error, 'message', message)
      const { runs } = await app.engine.listRuns()
      assert.deepEqual(runs, [])
    })
  }

  const operations: Record<string, (ctx: WorkflowCtx) => Promise<unknown>> = {
    'There is no option "retires" of ctx.localStep(). Did you mean "retries"?': (ctx) =>
      ctx.localStep('s', () => 0, options({ retires: 0 })),
    'There is no option "retires" of ctx.step(). Did you mean "retries"?': (ctx) =>
      ctx.step('s', null, options({ retires: 0 })),
    'There is no option "timeoutMs" of ctx.waitForSignal(). Did you mean "timeout"?': (ctx) =>
      ctx.waitForSignal('go', options({ timeoutMs: 5 })),
    'There is no option "concurency" of ctx.all(). Did you mean "concurrency"?': (ctx) =>
      ctx.all('echo', [1], options({ concurency: 1 })),
    'There is no option "mode" of ctx.allSettled(). Known are concurrency': (ctx) =>
      ctx.allSettled('echo', [1], options({ mode: 'failFast' })),
  }
  for (const [message, operation] of Object.entries(operations)) {
    test(`in a body: ${message}`, async ({ assert, cleanup }) => {
      const app = new DurableApp()
      cleanup(() => app.close())
      app.engine.register('echo', '1', async (_, input) => input)
      app.engine.register('main', '1', (ctx) => operation(ctx))
      await app.work()
      const { runId } = await app.engine.start('main', null)
      const run = await app.engine.waitForRun(runId)
      assert.equal(run.error?.message, message)
      const history = await app.engine.getHistory(runId)
      assert.deepEqual(history?.records, [])
    })
  }
})

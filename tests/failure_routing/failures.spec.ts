import { test } from '@japa/runner'
import type { WorkflowEngine } from '../../src/engine/engine.ts'
import { FatalError } from '../../src/errors.ts'
import type { WorkflowCtx } from '../../src/types/context.ts'
import type { FailureRoute, OnErrorInput } from '../../src/types/workflow.ts'
import { Stage } from '../support/stage.ts'
import { KINDS, onEach } from '../stores/databases.ts'
import { reaches } from '../support/reaches.ts'
import { until } from '../support/until.ts'

const CATCH_ALL: FailureRoute[] = [{ workflow: 'handler' }]

/** Registers `main` with a catch-all, and a handler that keeps what it is given. */
function registerMain(
  engine: WorkflowEngine,
  body: (ctx: WorkflowCtx, input: never) => Promise<unknown>,
  onError: FailureRoute[] = CATCH_ALL
) {
  const given: OnErrorInput[] = []
  engine.register('main', '1', body, { onError })
  engine.register('handler', '1', async (_, failure: OnErrorInput) => {
    given.push(failure)
    return 'handled'
  })
  return given
}

onEach(KINDS, (kind) =>
  test.group(`Failure routes | what is routed (${kind})`, (group) => {
    let stage: Stage
    group.each.setup(async () => {
      stage = await Stage.on(kind)
      return () => stage.close()
    })

    test('OE-9: a failure of a step is routed after its retries, a FatalError at once', async ({
      assert,
    }) => {
      const app = await stage.app()
      const { engine } = app
      const attempts = { flaky: 0, fatal: 0 }
      const given = registerMain(engine, async (ctx, which: 'flaky' | 'fatal') =>
        ctx.localStep(
          which,
          () => {
            attempts[which]++
            throw which === 'fatal' ? new FatalError('no') : new Error('again')
          },
          { retries: 2, backoffMs: 1 }
        )
      )
      await app.work()
      for (const which of ['flaky', 'fatal'] as const) {
        const handle = await engine.start({ name: 'main' }, which)
        assert.equal(await handle.result(), 'handled')
      }
      assert.deepEqual(attempts, { flaky: 3, fatal: 1 })
      assert.lengthOf(given, 2)
    })

    test('OE-9: a step that takes too long is routed by step_timeout', async ({ assert }) => {
      const app = await stage.app()
      const { engine } = app
      const given = registerMain(
        engine,
        async (ctx) =>
          ctx.localStep(
            'slow',
            ({ signal }) =>
              new Promise((_, reject) => {
                signal.addEventListener('abort', () => reject(signal.reason as Error))
              }),
            { retries: 0, timeoutMs: 5 }
          ),
        [{ code: 'step_timeout', workflow: 'handler' }]
      )
      await app.work()
      const handle = await engine.start({ name: 'main' }, null)
      assert.equal(await handle.result(), 'handled')
      assert.equal(given[0]?.error.code, 'step_timeout')
    })

    test('OE-10: a run that is cancelled is not routed, whether it executes or follows its handler', async ({
      assert,
    }) => {
      const app = await stage.app()
      const { engine } = app
      const undone: string[] = []
      registerMain(engine, async (ctx) => {
        await ctx.localStep('a', () => 1, { compensate: () => void undone.push('a') })
        await ctx.sleep('1 hour')
      })
      await app.work()
      for (const compensate of [false, true]) {
        const runId = compensate ? 'undone' : 'at-once'
        const event = new Promise((resolve) => engine.on('run.cancelled', resolve))
        await engine.start({ name: 'main' }, null, runId)
        await engine.cancel(runId, { compensate })
        const run = await engine.waitForRun(runId)
        assert.equal(run.status, 'cancelled')
        assert.deepEqual(run.tags, [])
        assert.include(await event, { runId, workflow: 'main' })
        assert.isNull(await engine.getRun(`${runId}.onError.0`))
      }
    })

    test('OE-10: a run that follows its handler is cancelled with it', async ({ assert }) => {
      const app = await stage.app()
      const { engine } = app
      engine.register(
        'main',
        '1',
        async () => {
          throw new FatalError('no', 'no')
        },
        { onError: CATCH_ALL }
      )
      engine.register('handler', '1', (ctx) => ctx.waitForSignal('never'))
      const cancelled: string[] = []
      engine.on('run.cancelled', ({ runId }) => cancelled.push(runId))
      const event = new Promise((resolve) => engine.on('run.routed', resolve))
      await app.work()
      await engine.start({ name: 'main' }, null, 'r')
      await event
      assert.isTrue(await engine.cancel('r'))
      for (const runId of ['r', 'r.onError.0']) {
        const { status } = await engine.waitForRun(runId)
        assert.equal(status, 'cancelled')
      }
      assert.deepEqual(cancelled, ['r', 'r.onError.0'])
      assert.isNull(await engine.getRun('r.onError.1'))
    })

    test('OE-10: a run past its executionTimeout is cancelled, and not routed', async ({
      assert,
    }) => {
      const app = await stage.app()
      const { engine } = app
      engine.register('main', '1', (ctx) => ctx.sleep('1 day'), {
        onError: CATCH_ALL,
        executionTimeout: '1 hour',
      })
      await app.work()
      await engine.start({ name: 'main' }, null, 'r')
      await engine.advanceClock(3_600_000)
      const run = await engine.waitForRun('r')
      assert.deepEqual(
        [run.status, run.errorCode, run.tags],
        ['cancelled', 'execution_timeout', []]
      )
      assert.isNull(await engine.getRun('r.onError.0'))
    })

    test('OE-10: a run that ends dead is not routed', async ({ assert }) => {
      const app = await stage.app()
      const { engine } = app
      registerMain(engine, async () => 'never reached')
      await engine.start({ name: 'main' }, null, 'r')
      await stage.loseBeyondCap('main')
      await app.work()
      const run = await engine.waitForRun('r')
      assert.deepEqual([run.status, run.tags], ['dead', []])
      assert.isNull(await engine.getRun('r.onError.0'))
    })

    test('OE-10: a body that does not fit its history is not routed where that is to fail, and undoes nothing', async ({
      assert,
    }) => {
      const app = await stage.app({ nonDeterminism: 'fail' })
      const { engine } = app
      const undone: string[] = []
      let deployment = 1
      registerMain(engine, async (ctx) => {
        await ctx.localStep('a', () => 1, { compensate: () => void undone.push('a') })
        if (deployment === 1) await ctx.waitForSignal('go')
        else await ctx.sleep(1)
      })
      const first = await app.work()
      await engine.start({ name: 'main' }, null, 'r')
      await reaches(stage.store, 'r', 'suspended')
      await first.stop()
      deployment = 2
      await engine.signal('go')
      await app.work()
      const run = await engine.waitForRun('r')
      assert.deepEqual([run.status, run.errorCode], ['failed', 'non_determinism'])
      assert.deepEqual([run.tags, undone], [[], []])
    })

    test('OE-10: a call of ctx in a step, and an operation that was not awaited, are not routed', async ({
      assert,
    }) => {
      const app = await stage.app()
      const { engine } = app
      const given = registerMain(engine, async (ctx, which: string) => {
        if (which === 'nested_operation')
          await ctx.localStep('outer', () => ctx.localStep('inner', () => 1))
        else void ctx.localStep('forgotten', () => 1)
      })
      await app.work()
      for (const code of ['nested_operation', 'operation_not_awaited']) {
        await engine.start({ name: 'main' }, code, code)
        const run = await engine.waitForRun(code)
        assert.deepEqual([run.status, run.errorCode, run.tags], ['failed', code, []])
      }
      assert.isEmpty(given)
    })

    test('OE-10: a body that fails because its child was cancelled or died is routed: it is neither', async ({
      assert,
    }) => {
      const app = await stage.app()
      const { engine } = app
      const undone: string[] = []
      const given = registerMain(engine, async (ctx, childId: string) => {
        await ctx.localStep('a', () => 1, { compensate: () => void undone.push(childId) })
        await ctx.child('child', null, childId)
      })
      engine.register('child', '1', (ctx) => ctx.sleep('1 day'))
      await app.work()
      const handle = await engine.start({ name: 'main' }, 'c')
      await until(async () => (await engine.getRun('c')) !== null)
      await engine.cancel('c')
      assert.equal(await handle.result(), 'handled')
      assert.deepEqual(undone, ['c'])
      assert.equal(given[0]?.error.code, 'cancelled')
      const run = await engine.getRun(handle)
      assert.deepEqual(run?.tags, ['onError:*'])
    })

    test('OE-11: details reach the handler, and the items of allSettled in a parent', async ({
      assert,
    }) => {
      const app = await stage.app()
      const { engine } = app
      const details = { issues: [{ path: 'n', at: 3 }], seen: null, nested: { deep: ['é'] } }
      const body = async (ctx: WorkflowCtx) =>
        ctx.localStep('fail', () => {
          throw new FatalError('invalid', 'invalid_line', details)
        })
      const given = registerMain(engine, body)
      engine.register('unhandled', '1', body)
      const seen: unknown[] = []
      engine.register('parent', '1', async (ctx) => {
        const items = await ctx.allSettled('unhandled', [1, 2])
        for (const item of items)
          if (item.status === 'rejected') seen.push((item.reason as FatalError).details)
      })
      await app.work()
      const [main, parent] = [
        await engine.start({ name: 'main' }, null),
        await engine.start({ name: 'parent' }, null),
      ]
      await main.result()
      await parent.result()
      assert.deepEqual(given[0]?.error.details, details)
      assert.deepEqual(seen, [details, details])
    })

    test('OE-11: details that cannot be stored say so, and lose neither the failure nor its route', async ({
      assert,
    }) => {
      const app = await stage.app()
      const { engine } = app
      const given = registerMain(engine, async (ctx, which: string) =>
        ctx.localStep('fail', () => {
          const socket = { open: () => which }
          throw new FatalError('invalid', 'invalid_line', which === 'one' ? socket : [socket])
        })
      )
      await app.work()
      for (const which of ['one', 'list']) {
        const handle = await engine.start({ name: 'main' }, which)
        assert.equal(await handle.result(), 'handled')
      }
      for (const { error } of given) {
        assert.deepInclude(error, { message: 'invalid', code: 'invalid_line' })
        assert.match(String(error.details), /^Not recorded: Cannot store details.*a function/)
      }
      assert.lengthOf(given, 2)
    })
  })
)

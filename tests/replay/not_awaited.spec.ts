import { test } from '@japa/runner'
import type { WorkflowCtx } from '../../src/types/context.ts'
import { Deployments } from './deployments.ts'

test.group('Operations that nobody awaits', (group) => {
  let deployments: Deployments
  group.each.setup(() => {
    deployments = new Deployments()
    return () => deployments.close()
  })

  const forgetful: Record<string, (ctx: WorkflowCtx) => unknown> = {
    'a step': (ctx) => void ctx.localStep('forgotten', () => 1),
    'a sleep': (ctx) => void ctx.sleep('1m'),
    'a child': (ctx) => void ctx.child('child'),
    'a step in the middle': async (ctx) => {
      void ctx.localStep('forgotten', () => 1)
      await ctx.localStep('awaited', () => 2)
    },
  }
  for (const [what, main] of Object.entries(forgetful))
    test(`${what} without await fails the run, with its position`, async ({ assert }) => {
      await deployments.deploy({ main, child: () => 1 })
      const run = await deployments.start()
      assert.equal(run.status, 'failed')
      assert.equal(run.error!.code, 'operation_not_awaited')
      assert.equal((run.error!.details as { seq: number }).seq, 0)
      assert.isFalse(run.error!.retryable)
    })

  const attentive: Record<string, (ctx: WorkflowCtx) => unknown> = {
    'the loser of a race': (ctx) =>
      Promise.race([ctx.localStep('a', () => 1), ctx.sleep('1h'), ctx.waitForSignal('never')]),
    'the members of Promise.all that are open when it rejects': (ctx) =>
      Promise.all([
        ctx.sleep('1h'),
        ctx.localStep('b', () => Promise.reject(new Error('b')), { retries: 0 }),
      ]).catch(() => 1),
    'void promise.then()': async (ctx) => {
      void ctx.localStep('a', () => 1).then(() => {})
      await ctx.localStep('b', () => 2)
    },
    'what is awaited later': async (ctx) => {
      const a = ctx.localStep('a', () => 1)
      await ctx.localStep('b', () => 2)
      await a
    },
    'what the body returns': (ctx) => ctx.localStep('a', () => 1),
    'what an async body returns': async (ctx) => ctx.localStep('a', () => 1),
    'what has a catch or a finally': async (ctx) => {
      void ctx.localStep('a', () => 1).catch(() => {})
      void ctx.localStep('b', () => 1).finally(() => {})
    },
  }
  for (const [what, main] of Object.entries(attentive))
    test(`${what} counts as awaited`, async ({ assert }) => {
      await deployments.deploy({ main })
      const run = await deployments.start()
      assert.equal(run.status, 'completed', run.error?.message)
    })

  test('a body that throws fails with its own error, whatever it forgot', async ({ assert }) => {
    await deployments.deploy({
      main: (ctx) => {
        void ctx.sleep('1m')
        throw new Error('its own')
      },
    })
    const run = await deployments.start()
    assert.equal(run.error!.message, 'its own')
  })

  const warnings = () =>
    deployments.app.log.lines.filter(({ level }) => level === 'warn').map(({ args }) => args)

  test('steps of functions that nobody waited for at the end of a body are named in a warning', async ({
    assert,
  }) => {
    const calls: number[] = []
    await deployments.deploy({
      main(ctx) {
        const mail = async (n: number) => {
          await ctx.localStep(`mail-${n}`, () => void calls.push(n))
        }
        for (const n of [1, 2]) void mail(n)
        return 'done'
      },
    })
    const run = await deployments.start()
    assert.equal(run.status, 'completed')
    assert.isEmpty(calls)
    assert.deepEqual(warnings(), [
      [
        { runId: 'run', workflow: 'main' },
        'main run completed without local_step "mail-1", local_step "mail-2": nobody waited for them, so they were not begun. In a loop write: await Promise.all(list.map(...))',
      ],
    ])
  })

  const silent: Record<string, (ctx: WorkflowCtx) => unknown> = {
    'the loser of a race, which was begun,': (ctx) =>
      Promise.race([ctx.localStep('a', () => 1), ctx.sleep('1h'), ctx.waitForSignal('never')]),
    'a function that gets to its step before the end': async (ctx) => {
      void ctx.localStep('a', () => 1).then(() => {})
      await ctx.localStep('b', () => 2)
    },
    'a child that was started at the end': (ctx) => void ctx.startChild('child').then(() => {}),
    'a body that throws': (ctx) => {
      void ctx.localStep('a', () => 1).then(() => {})
      throw new Error('its own')
    },
  }
  for (const [what, main] of Object.entries(silent))
    test(`${what} is no reason for that warning`, async ({ assert }) => {
      await deployments.deploy({ main, child: () => 1 })
      await deployments.start()
      assert.isEmpty(warnings())
    })
})

import { test } from '@japa/runner'
import { SignalTimeoutError } from '../../src/errors.ts'
import type { WorkflowCtx } from '../../src/types/context.ts'
import { rowOf } from '../support/run_row.ts'
import { Deployments } from './deployments.ts'

test.group('Signals and replay', (group) => {
  let deployments: Deployments
  group.each.setup(() => {
    deployments = new Deployments()
    return () => deployments.close()
  })

  const waitThenSleep = async (ctx: WorkflowCtx) => {
    const got = await ctx
      .waitForSignal('go', { timeout: '1m' })
      .catch((error: SignalTimeoutError) => error.code)
    await ctx.sleep('1h')
    return got
  }

  test('one sent before the wait is kept, two sent at once are both received, in order (case 9)', async ({
    assert,
  }) => {
    await deployments.deploy({
      main: async (ctx) => [await ctx.waitForSignal('go'), await ctx.waitForSignal('go')],
    })
    await Promise.all([deployments.engine.signal('go', 1), deployments.engine.signal('go', 2)])
    const run = await deployments.start()
    assert.deepEqual(run.output, [1, 2])
  })

  for (const first of ['the signal', 'the time-out'] as const)
    test(`a wait whose signal comes at its deadline ends once, and the same way on replay, when ${first} is seen first (case 10, P3)`, async ({
      assert,
    }) => {
      await deployments.deploy({ main: waitThenSleep })
      await deployments.start()
      if (first === 'the signal') {
        // The process is gone: signal and deadline are both there when the next one looks.
        deployments.crash()
        deployments.signalFromOutside('go', 'in time')
        deployments.database.advanceClock(60_000)
        await deployments.deploy({ main: waitThenSleep })
        await deployments.rest()
      } else {
        await deployments.advance(60_000)
        await deployments.engine.signal('go', 'late')
      }
      await deployments.deploy({ main: waitThenSleep })
      const run = await deployments.advance(3_600_000)
      assert.equal(run.output, first === 'the signal' ? 'in time' : 'signal_timeout')
      const records = await deployments.records()
      assert.lengthOf(
        records.filter(({ kind }) => kind === 'signal'),
        1
      )
      assert.lengthOf(deployments.database.kept.of('go'), first === 'the signal' ? 0 : 1)
    })

  test('a time-out that the body caught is a success of the run (case 11)', async ({ assert }) => {
    await deployments.deploy({
      main: async (ctx) => {
        try {
          return await ctx.waitForSignal('go', { timeout: '1m' })
        } catch (error) {
          assert.instanceOf(error, SignalTimeoutError)
          return 'nobody came'
        }
      },
    })
    const waiting = await deployments.start()
    assert.equal(waiting.status, 'suspended')
    const run = await deployments.advance(60_000)
    assert.equal(run.status, 'completed')
    assert.equal(run.output, 'nobody came')
  })

  test('a run whose signal went to somebody else at its deadline sleeps on, and is not woken again and again (case 13)', async ({
    assert,
  }) => {
    await deployments.deploy({
      main: async (ctx) => {
        const first = ctx.waitForSignal('go', { timeout: '1m' }).catch(() => 'timed out')
        await Promise.all([first, ctx.sleep('1h')])
      },
    })
    await deployments.start()
    // The signal is in the inbox of a run whose turn is about to record that its time is over.
    deployments.database.advanceClock(60_000)
    deployments.beforeNextCommit(() => deployments.signalFromOutside('go', 'late'))
    deployments.database.changed()
    const run = await deployments.rest()
    assert.equal(run.status, 'suspended')
    assert.isAbove(run.dueAt!, deployments.database.now())
    const { token } = await rowOf(deployments.engine, 'run')
    assert.isBelow(token, 6)
  })
})

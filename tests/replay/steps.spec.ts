import { test } from '@japa/runner'
import { FatalError, StepError } from '../../src/errors.ts'
import type { WorkflowCtx } from '../../src/types/context.ts'
import type { StepContext } from '../../src/types/step.ts'
import { Gate } from '../support/gate.ts'
import { until } from '../support/until.ts'
import { Deployments } from './deployments.ts'

test.group('Steps and replay', (group) => {
  let deployments: Deployments
  let calls: string[]
  group.each.setup(() => {
    deployments = new Deployments()
    calls = []
    return () => deployments.close()
  })

  const fails = (name: string) => () => {
    calls.push(name)
    throw new FatalError(`${name} failed`, 'no_luck')
  }
  const works =
    <T>(name: string, value: T) =>
    () => {
      calls.push(name)
      return value
    }

  test('a failure that the body caught is not executed again, and is the same after a restart (case 14, P3)', async ({
    assert,
  }) => {
    const seen: unknown[] = []
    const bodies = {
      main: async (ctx: WorkflowCtx) => {
        try {
          await ctx.localStep('a', fails('a'))
        } catch (error) {
          assert.instanceOf(error, StepError)
          seen.push((error as StepError).message, (error as StepError).code)
          await ctx.localStep('b', works('b', 1))
        }
        await ctx.sleep('1m')
        return 'done'
      },
    }
    await deployments.deploy(bodies)
    const suspended = await deployments.start()
    assert.equal(suspended.status, 'suspended')
    await deployments.deploy(bodies)
    const run = await deployments.advance(60_000)
    assert.equal(run.output, 'done')
    assert.deepEqual(calls, ['a', 'b'])
    assert.deepEqual(seen, ['a failed', 'no_luck', 'a failed', 'no_luck'])
  })

  for (const parallel of [false, true])
    test(`the 10th, 100th and 1,000th of ${parallel ? 'parallel' : 'sequential'} steps replay in their place (case 16)`, async ({
      assert,
    }) => {
      let executed = 0
      const steps = Array.from({ length: 1_000 }, (_, index) => index)
      const bodies = {
        main: async (ctx: WorkflowCtx) => {
          const step = (index: number) =>
            ctx.localStep(`step-${index}`, () => {
              executed++
              return index
            })
          const values: number[] = []
          if (parallel) values.push(...(await Promise.all(steps.map(step))))
          else for (const index of steps) values.push(await step(index))
          await ctx.sleep('1m')
          return [9, 99, 999].map((index) => values[index])
        },
      }
      await deployments.deploy(bodies)
      await deployments.start()
      await deployments.deploy(bodies)
      const run = await deployments.advance(60_000)
      assert.deepEqual(run.output, [9, 99, 999])
      assert.equal(executed, 1_000)
    }).timeout(60_000)

  test('values of every kind are the same at the first execution and on replay (case 17, P3, P8)', async ({
    assert,
  }) => {
    class Money {
      constructor(readonly cents: number) {}
    }
    const values: Record<string, unknown> = {
      nothing: undefined,
      date: new Date(1),
      map: new Map([['a', new Set([1n])]]),
      error: new TypeError('kept', { cause: 'x' }),
      big: 12_345_678_901_234_567_890n,
      text: 'a\u0000b\ud800',
      numbers: [Number.NaN, -0, Infinity],
      instance: new Money(1),
    }
    const seen: Record<string, unknown>[] = []
    const bodies = {
      main: async (ctx: WorkflowCtx) => {
        const got: Record<string, unknown> = {}
        for (const name of Object.keys(values))
          got[name] = await ctx
            .localStep(name, () => values[name], { retries: 0 })
            .catch((error: StepError) => error.code)
        seen.push(got)
        await ctx.sleep('1m')
      },
    }
    await deployments.deploy(bodies)
    await deployments.start()
    await deployments.deploy(bodies)
    await deployments.advance(60_000)
    const [live, replayed] = seen
    assert.deepEqual(live, replayed)
    assert.deepEqual(live, { ...values, instance: 'unserializable' })
    assert.notStrictEqual(live!.map, values.map)
  })

  test('the failure of a value that cannot be stored names the path to it (case 17, P8)', async ({
    assert,
  }) => {
    await deployments.deploy({
      main: (ctx) =>
        ctx.localStep('a', () => ({ items: [1, { go() {} }] }), { retries: 0 }).then(() => 1),
    })
    const run = await deployments.start()
    assert.equal(run.status, 'failed')
    assert.include(
      run.error!.message,
      'Cannot store output.items[1].go of step "a": it is a function'
    )
  })

  test('steps in flight when the body ends are aborted and recorded as abandoned', async ({
    assert,
  }) => {
    const gate = new Gate()
    const aborted: boolean[] = []
    await deployments.deploy({
      main: (ctx) =>
        Promise.race([
          ctx.localStep('slow', async ({ signal }) => {
            await gate.pass(signal).finally(() => aborted.push(signal.aborted))
          }),
          ctx.localStep('fast', () => 'fast'),
        ]),
    })
    const run = await deployments.start()
    assert.equal(run.output, 'fast')
    assert.deepEqual(aborted, [true])
    const records = await deployments.records()
    assert.deepEqual(
      records.map(({ name, status, ordinal }) => [name, status, ordinal]),
      [
        ['slow', 'abandoned', null],
        ['fast', 'completed', 0],
      ]
    )
  })

  test('an attempt that runs too long is aborted, fails as step_timeout, and is followed by another', async ({
    assert,
  }) => {
    const attempts: number[] = []
    await deployments.deploy({
      main: (ctx) =>
        ctx.localStep(
          'slow',
          async ({ attempt, signal }: StepContext) => {
            attempts.push(attempt)
            if (attempt === 2) return 'in time'
            return new Promise((_, reject) => {
              signal.addEventListener('abort', () => reject(signal.reason))
            })
          },
          { timeoutMs: 5, retries: 1, backoffMs: 1 }
        ),
    })
    const run = await deployments.start()
    assert.equal(run.output, 'in time')
    assert.deepEqual(attempts, [1, 2])
    const [record] = await deployments.records()
    assert.equal(record!.attempts, 2)
  })

  test('a step whose last attempt runs too long fails with step_timeout', async ({ assert }) => {
    await deployments.deploy({
      main: (ctx) =>
        ctx.localStep('slow', ({ signal }) => new Gate().pass(signal), {
          timeoutMs: 5,
          retries: 0,
        }),
    })
    const run = await deployments.start()
    assert.equal(run.status, 'failed')
    assert.equal(run.error!.code, 'step_timeout')
  })

  test('a back-off longer than a second suspends the run, and its attempts survive a restart', async ({
    assert,
  }) => {
    const attempts: number[] = []
    const bodies = {
      main: (ctx: WorkflowCtx) =>
        ctx.localStep(
          'flaky',
          ({ attempt }) => {
            attempts.push(attempt)
            if (attempt < 3) throw new Error(`attempt ${attempt}`)
            return attempt
          },
          { retries: 2, backoffMs: 20_000 }
        ),
    }
    await deployments.deploy(bodies)
    const suspended = await deployments.start()
    assert.equal(suspended.status, 'suspended')
    const [wait] = await deployments.waits()
    assert.equal(wait!.attempts, 1)
    await deployments.deploy(bodies)
    const again = await deployments.advance(30_000)
    assert.equal(again.status, 'suspended')
    await deployments.deploy(bodies)
    const run = await deployments.advance(60_000)
    assert.equal(run.output, 3)
    assert.deepEqual(attempts, [1, 2, 3])
  })

  test('a back-off of up to a second keeps the run, and its attempts survive a crash', async ({
    assert,
  }) => {
    const attempts: number[] = []
    const gate = new Gate()
    const bodies = {
      main: (ctx: WorkflowCtx) =>
        Promise.all([
          ctx.localStep(
            'flaky',
            async ({ attempt }) => {
              attempts.push(attempt)
              if (attempt === 1) throw new Error('first')
              if (attempts.length === 2) await gate.pass()
              return attempt
            },
            { retries: 1, backoffMs: 1 }
          ),
          ctx.localStep('beside', async () => {
            await until(() => attempts.length > 1)
          }),
        ]),
    }
    await deployments.deploy(bodies)
    await deployments.engine.start('main', undefined, 'run')
    await gate.reached()
    await until(() => deployments.database.history.live('run').length === 1)
    const [wait] = await deployments.waits()
    assert.equal(wait!.attempts, 1)
    deployments.crash()
    await deployments.deploy(bodies)
    const run = await deployments.rest()
    gate.open()
    assert.deepEqual(run.output, [2, undefined])
    assert.deepEqual(attempts, [1, 2, 2])
  })

  test('while a worker drains no further attempt begins: it is made by the next one', async ({
    assert,
  }) => {
    const attempts: string[] = []
    const bodies = (worker: string) => ({
      main: (ctx: WorkflowCtx) =>
        ctx.localStep(
          'flaky',
          ({ attempt }) => {
            attempts.push(`${worker}: ${attempt}`)
            if (attempt === 1) throw new Error('first')
            return attempt
          },
          { retries: 1, backoffMs: 1_000 }
        ),
    })
    await deployments.deploy(bodies('one'))
    await deployments.engine.start('main', undefined, 'run')
    await until(() => attempts.length === 1)
    await deployments.deploy(bodies('two'))
    const run = await deployments.rest()
    assert.equal(run.output, 2)
    assert.deepEqual(attempts, ['one: 1', 'two: 2'])
  })
})

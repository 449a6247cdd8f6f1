import { test } from '@japa/runner'
import type { WorkflowCtx } from '../../src/types/context.ts'
import { Deployments } from './deployments.ts'

test.group('What a body gets from ctx', (group) => {
  let deployments: Deployments
  group.each.setup(() => {
    deployments = new Deployments()
    return () => deployments.close()
  })

  test('now, random and uuid are the same on replay (P3)', async ({ assert }) => {
    const seen: unknown[][] = []
    const main = async (ctx: WorkflowCtx) => {
      const values: unknown[] = [ctx.now().getTime(), ctx.random(), ctx.random(), ctx.uuid()]
      await ctx.localStep('a', () => 1)
      values.push(ctx.now().getTime(), ctx.random(), ctx.uuid())
      seen.push(values)
      await ctx.sleep('1m')
    }
    await deployments.deploy({ main })
    await deployments.start()
    deployments.crash()
    await deployments.deploy({ main })
    await deployments.advance(60_000)
    assert.deepEqual(seen[0], seen[1])
    assert.equal(new Set(seen[0]!.filter((value) => value !== seen[0]![0])).size >= 4, true)
  })

  test('random and uuid differ from run to run', async ({ assert }) => {
    await deployments.deploy({ main: (ctx) => [ctx.random(), ctx.uuid()] })
    const one = await deployments.start(undefined, 'one')
    const two = await deployments.start(undefined, 'two')
    assert.notEqual(one.output[0], two.output[0])
    assert.notEqual(one.output[1], two.output[1])
    assert.match(one.output[1], /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/)
  })

  test('now is the time of the store', async ({ assert }) => {
    await deployments.deploy({ main: (ctx) => ctx.now().getTime() })
    await deployments.engine.advanceClock(86_400_000)
    const earliest = deployments.database.now()
    const run = await deployments.start()
    assert.isAtLeast(run.output, earliest)
    assert.isAtMost(run.output, deployments.database.now() + 1)
  })

  for (const restarted of [false, true])
    test(`now never goes back within a run, though the clock of the store does${restarted ? ', and though another process goes on' : ''}`, async ({
      assert,
    }) => {
      const main = async (ctx: WorkflowCtx) => {
        const before = ctx.now().getTime()
        await ctx.waitForSignal('go')
        return ctx.now().getTime() - before
      }
      await deployments.deploy({ main })
      await deployments.start()
      if (restarted) deployments.crash()
      deployments.database.advanceClock(-3_600_000)
      if (restarted) await deployments.deploy({ main })
      deployments.signalFromOutside('go', null)
      const run = await deployments.rest()
      assert.equal(run.status, 'completed')
      assert.isAtLeast(run.output, 0)
    })

  test('the log is silent while the history is replayed, and speaks again after it', async ({
    assert,
  }) => {
    const main = async (ctx: WorkflowCtx) => {
      ctx.log.info('began')
      await ctx.localStep('a', () => 1)
      ctx.log.info('after a')
      await ctx.sleep('1m')
      ctx.log.info('after the sleep')
    }
    const first = await deployments.deploy({ main })
    await deployments.start()
    deployments.crash()
    const second = await deployments.deploy({ main })
    await deployments.advance(60_000)
    const said = ({ log }: typeof first) =>
      log.lines.filter(({ level }) => level === 'info').map(({ args }) => args.at(-1))
    assert.deepEqual(said(first), ['began', 'after a'])
    assert.deepEqual(said(second), ['after the sleep'])
  })

  test('the log is silent while a body comes to what stands open', async ({ assert }) => {
    const main = async (ctx: WorkflowCtx) => {
      ctx.log.info('began')
      await ctx.waitForSignal('go')
      ctx.log.info('went on')
    }
    await deployments.deploy({ main })
    await deployments.start()
    deployments.crash()
    const { log } = await deployments.deploy({ main })
    await deployments.engine.signal('go')
    await deployments.rest()
    const said = log.lines.filter(({ level }) => level === 'info').map(({ args }) => args.at(-1))
    assert.deepEqual(said, ['went on'])
  })

  test('terms of a call that are out of range are E_INVALID_STEP, and take no position', async ({
    assert,
  }) => {
    const caught: string[] = []
    let attempts = 0
    const main = async (ctx: WorkflowCtx) => {
      const failing = () => {
        attempts++
        throw new Error('never called')
      }
      for (const call of [
        () => ctx.localStep('a', failing, { retries: Number.NaN }),
        () => ctx.localStep('a', failing, { timeoutMs: 3e9 }),
        () => ctx.step('b', null, { backoffMs: -1 }),
      ])
        await call().catch((error: Error) => void caught.push(error.message.split('.')[0]!))
      return ctx.localStep('c', () => 1)
    }
    await deployments.deploy({ main })
    await deployments.start()
    const run = await deployments.rest()
    assert.deepEqual([run.output, attempts], [1, 0])
    assert.deepEqual(caught, [
      'Invalid step "a": "retries" is NaN',
      'Invalid step "a": "timeoutMs" is 3000000000',
      'Invalid step "b": "backoffMs" is -1',
    ])
    const history = await deployments.engine.getHistory(run.id)
    assert.deepEqual(
      history?.records.map(({ seq, name }) => [seq, name]),
      [[0, 'c']]
    )
  })

  test('an operation inside a step is E_NESTED_OPERATION where it is called', async ({
    assert,
  }) => {
    const calls: Record<string, (ctx: WorkflowCtx) => unknown> = {
      localStep: (ctx) => ctx.localStep('inner', () => 1),
      step: (ctx) => ctx.step('inner'),
      sleep: (ctx) => ctx.sleep(1),
      waitForSignal: (ctx) => ctx.waitForSignal('go'),
      sendSignal: (ctx) => ctx.sendSignal('go'),
      child: (ctx) => ctx.child('main'),
      startChild: (ctx) => ctx.startChild('main'),
      all: (ctx) => ctx.all('main', [1]),
      allSettled: (ctx) => ctx.allSettled('main', [1]),
      now: (ctx) => ctx.now(),
      random: (ctx) => ctx.random(),
      uuid: (ctx) => ctx.uuid(),
    }
    for (const [name, call] of Object.entries(calls)) {
      const seen: unknown[] = []
      await deployments.deploy({
        main: (ctx) =>
          ctx.localStep(
            'outer',
            async () => {
              try {
                await call(ctx)
              } catch (error) {
                seen.push((error as { code: string }).code, (error as Error).message)
                throw error
              }
            },
            { retries: 0 }
          ),
      })
      const run = await deployments.start(undefined, `run-${name}`)
      assert.equal(run.error?.code, 'nested_operation', name)
      assert.equal(seen[0], 'E_NESTED_OPERATION', name)
      assert.include(String(seen[1]), `ctx.${name}()`)
      assert.include(String(seen[1]), '"outer"')
      const records = await deployments.records(`run-${name}`)
      assert.deepEqual(
        records.map((record) => record.name),
        ['outer']
      )
    }
  })

  test('engine.start inside a body is E_START_IN_BODY, and is allowed inside a step', async ({
    assert,
  }) => {
    await deployments.deploy({
      main: async (ctx) => {
        const { engine } = deployments
        const refused = await engine.start('other', 1).then(
          () => null,
          (error: { code: string }) => error.code
        )
        await ctx.localStep('start', () => engine.start('other', 1, 'other').then(() => 1))
        return refused
      },
      other: () => 'other',
    })
    const run = await deployments.start()
    assert.equal(run.output, 'E_START_IN_BODY')
    const other = await deployments.rest('other')
    assert.equal(other.status, 'completed')
  })

  test('the signal of a body fires only when its turn is void', async ({ assert }) => {
    const signals: AbortSignal[] = []
    const main = async (ctx: WorkflowCtx) => {
      signals.push(ctx.abortSignal)
      await ctx.localStep('a', () => 1)
      await ctx.waitForSignal('go')
    }
    await deployments.deploy({ main })
    await deployments.start()
    assert.deepEqual(
      signals.map(({ aborted }) => aborted),
      [false]
    )
    await deployments.deploy({ main })
    assert.isTrue(signals[0]!.aborted)
  })
})

import { test } from '@japa/runner'
import type { WorkflowCtx } from '../../src/types/context.ts'
import { type Body, Deployments } from './deployments.ts'

test.group('Code that does not fit the history', (group) => {
  let deployments: Deployments
  let calls: string[]
  group.each.setup(() => {
    deployments = new Deployments()
    calls = []
    return () => deployments.close()
  })

  const step = (ctx: WorkflowCtx, name: string) =>
    ctx.localStep(name, () => {
      calls.push(name)
      return name
    })
  const before = async (ctx: WorkflowCtx) => {
    await step(ctx, 'reserve')
    await ctx.sleep('1m')
    return step(ctx, 'ship')
  }

  async function deployed(after: (ctx: WorkflowCtx) => unknown, options = {}) {
    await deployments.deploy({ main: before })
    await deployments.start()
    await deployments.deploy({ main: after }, options)
    return deployments.advance(60_000)
  }

  test('the error says the position, what the code asked, what was recorded, and the ways out (case 20)', async ({
    assert,
  }) => {
    const { status, error, errorCode } = await deployed(async (ctx) => {
      await step(ctx, 'charge')
    })
    assert.equal(status, 'blocked')
    assert.equal(errorCode, 'non_determinism')
    assert.deepEqual(error!.details, {
      seq: 0,
      asked: 'local_step "charge" after 0 deliveries',
      recorded: 'local_step "reserve" after 0 deliveries',
    })
    for (const part of [
      'position 0',
      '"charge"',
      '"reserve"',
      'Roll the change back',
      'new version',
    ])
      assert.include(error!.message, part)
  })

  test('the body sees nothing of it, nothing is executed or recorded, and the run waits to be offered again (case 20)', async ({
    assert,
  }) => {
    const seen: string[] = []
    const run = await deployed(async (ctx) => {
      try {
        await step(ctx, 'charge')
        seen.push('settled')
      } catch {
        seen.push('caught')
      } finally {
        seen.push('finally')
      }
    })
    assert.deepEqual(seen, [])
    assert.deepEqual(calls, ['reserve'])
    assert.isNotNull(run.dueAt)
    const records = await deployments.records()
    assert.deepEqual(
      records.map(({ name }) => name),
      ['reserve']
    )
    assert.deepEqual(await deployments.engine.findStranded(), [])
  })

  test('the run goes on when the code is put back (case 20)', async ({ assert }) => {
    const events: string[] = []
    await deployed(() => 'nothing')
    const app = await deployments.deploy({ main: before })
    app.engine.on('run.completed', () => events.push('completed'))
    await deployments.advance(3_600_000)
    const run = await deployments.rest()
    assert.equal(run.output, 'ship')
    assert.isUndefined(run.error)
    assert.deepEqual(calls, ['reserve', 'ship'])
  })

  test("with nonDeterminism: 'fail' the run fails at once", async ({ assert }) => {
    const run = await deployed(() => 'nothing', { nonDeterminism: 'fail' })
    assert.equal(run.status, 'failed')
    assert.equal(run.error!.code, 'non_determinism')
    assert.equal(
      run.error!.message.includes('asked for nothing'),
      true,
      'the body ended without the recorded call'
    )
  })

  const changes: Record<string, (ctx: WorkflowCtx) => unknown> = {
    'another kind of operation': async (ctx) => {
      await ctx.sleep('1m')
    },
    'another kind for an operation that stands open': async (ctx) => {
      await step(ctx, 'reserve')
      await ctx.waitForSignal('sleep')
    },
    'an operation less before one that stands open': (ctx) => ctx.sleep('1m'),
    'an end before everything recorded was asked for': (ctx) => step(ctx, 'reserve'),
    'a throw before everything recorded was asked for': async (ctx) => {
      await step(ctx, 'reserve')
      throw new Error('unexpected')
    },
    'calls at once that came one after the other': (ctx) =>
      Promise.all([step(ctx, 'reserve'), ctx.sleep('1m')]),
  }
  for (const [what, body] of Object.entries(changes))
    test(`${what} blocks the run (case 20)`, async ({ assert }) => {
      const run = await deployed(body)
      assert.equal(run.status, 'blocked')
      assert.equal(run.error!.code, 'non_determinism')
      assert.deepEqual(calls, ['reserve'])
    })

  const waiting = (ctx: WorkflowCtx) => ctx.waitForSignal('go')
  const open: Record<string, { first: Body; then: Body; asked: string; recorded: string }> = {
    'fewer inputs for all': {
      first: (ctx) => ctx.all('waiting', [1, 2, 3]),
      then: (ctx) => ctx.all('waiting', [1, 2]),
      asked: 'all "waiting" of 2 inputs',
      recorded: 'all "waiting" of 3 inputs',
    },
    'more inputs for allSettled': {
      first: (ctx) => ctx.allSettled('waiting', [1]),
      then: (ctx) => ctx.allSettled('waiting', [1, 2]),
      asked: 'all_settled "waiting" of 2 inputs',
      recorded: 'all_settled "waiting" of 1 inputs',
    },
    'another id for a child': {
      first: (ctx) => ctx.child('waiting', null, 'one'),
      then: (ctx) => ctx.child('waiting', null, 'other'),
      asked: 'child "waiting" of run other',
      recorded: 'child "waiting" of run one',
    },
  }
  for (const [what, { first, then, asked, recorded }] of Object.entries(open))
    test(`${what} while it is waited for blocks the run, and starts nothing (case 20)`, async ({
      assert,
    }) => {
      await deployments.deploy({ main: first, waiting })
      await deployments.start()
      const { runs: started } = await deployments.engine.listRuns()
      await deployments.deploy({ main: then, waiting })
      for (const id of ['a', 'b', 'c']) await deployments.engine.signal('go', null, { id })
      const run = await deployments.advance(60_000)
      assert.equal(run.status, 'blocked')
      assert.deepEqual(run.error!.details, { seq: 0, asked, recorded })
      const { runs: after } = await deployments.engine.listRuns()
      assert.lengthOf(after, started.length)
    })

  test('an operation that was never recorded may be another one', async ({ assert }) => {
    const run = await deployed(async (ctx) => {
      await step(ctx, 'reserve')
      await ctx.sleep('2m')
      return step(ctx, 'deliver')
    })
    assert.equal(run.output, 'deliver')
  })
})

import { test } from '@japa/runner'
import { BaseWorkflow } from '../../src/base_workflow.ts'
import { stores } from '../../src/define_config.ts'
import { defineStep } from '../../src/step.ts'
import type { WorkflowCtx } from '../../src/types/context.ts'
import { DurableApp } from '../support/durable_app.ts'

/** As code without types passes them. */
const options = (given: unknown) => given as never

class Transaction {
  readonly isTransaction = true
}

class Line extends BaseWorkflow {
  static override workflow = { name: 'options.line' }
  async run() {}
}

test.group('Options that are no object', () => {
  const start = '{ runId?, client?, tags?, namespace?, priority? }'
  const call = '{ retries?, timeoutMs?, backoffMs?, compensate? }'

  for (const { of, got, takes, run } of [
    {
      of: 'engine.signal()',
      got: '"approval-7"',
      takes: '{ id? }',
      run: ({ engine }: DurableApp) => engine.signal('go', null, options('approval-7')),
    },
    {
      of: 'engine.start()',
      got: 'an instance of Transaction',
      takes: start,
      run: ({ engine }: DurableApp) => engine.start('echo', null, options(new Transaction())),
    },
    {
      of: 'engine.start()',
      got: '7',
      takes: start,
      run: ({ engine }: DurableApp) => engine.start('echo', null, options(7)),
    },
    {
      of: 'engine.start()',
      got: 'a list',
      takes: start,
      run: ({ engine }: DurableApp) => engine.start('echo', null, 'r1', options(['red'])),
    },
    {
      of: 'engine.cancel()',
      got: 'null',
      takes: '{ compensate?, reason? }',
      run: ({ engine }: DurableApp) => engine.cancel('r1', options(null)),
    },
    {
      of: 'engine.waitForRun()',
      got: '500',
      takes: '{ timeoutMs? }',
      run: ({ engine }: DurableApp) => engine.waitForRun('r1', options(500)),
    },
    {
      of: 'stores.lucid()',
      got: '"sqlite"',
      takes: '{ connection?, direct? }',
      run: async () => stores.lucid(options('sqlite')),
    },
    {
      of: 'step "x"',
      got: 'the function retries',
      takes: null,
      run: async () =>
        defineStep(
          'x',
          () => 0,
          options(function retries() {})
        ),
    },
  ]) {
    test(`${of} says what to pass instead of ${got}, and does nothing`, async ({
      assert,
      cleanup,
    }) => {
      const app = new DurableApp()
      cleanup(() => app.close())
      app.engine.register('echo', '1', async (_, input) => input)
      const refused: unknown = await run(app).catch((reason: unknown) => reason)
      assert.propertyVal(refused, 'code', 'E_INVALID_OPTION')
      assert.propertyVal(refused, 'status', 400)
      assert.include(String(refused), `Invalid options of ${of}: got ${got}, expected an object: `)
      if (takes !== null) assert.include(String(refused), takes)
      const { runs } = await app.engine.listRuns()
      assert.deepEqual(runs, [])
    })
  }

  test('an object without a prototype is one', async ({ assert, cleanup }) => {
    const app = new DurableApp()
    cleanup(() => app.close())
    app.engine.register('echo', '1', async (_, input) => input)
    const given = Object.assign(Object.create(null), { runId: 'r1' })
    const { runId } = await app.engine.start('echo', null, given)
    assert.equal(runId, 'r1')
  })

  for (const { of, takes, run: operation } of [
    {
      of: 'ctx.localStep()',
      takes: call,
      run: (ctx: WorkflowCtx) => ctx.localStep('s', () => 0, options('s-1')),
    },
    {
      of: 'ctx.step()',
      takes: call,
      run: (ctx: WorkflowCtx) => ctx.step('s', null, options(null)),
    },
    {
      of: 'ctx.waitForSignal()',
      takes: '{ timeout? }',
      run: (ctx: WorkflowCtx) => ctx.waitForSignal('go', options('2 days')),
    },
    {
      of: 'ctx.all()',
      takes: '{ mode?, concurrency? }',
      run: (ctx: WorkflowCtx) => ctx.all('echo', [1], options(null)),
    },
    {
      of: 'Line.start()',
      takes: '{ runId? }',
      run: async () => Line.start(undefined, options('line-1')),
    },
  ]) {
    test(`${of} fails the run with what to pass`, async ({ assert, cleanup }) => {
      const app = new DurableApp()
      cleanup(() => app.close())
      app.engine.register('echo', '1', async (_, input) => input)
      app.engine.register('main', '1', (ctx) => operation(ctx))
      await app.work()
      const { runId } = await app.engine.start('main', null)
      const { errorCode, error } = await app.engine.waitForRun(runId)
      assert.equal(errorCode, 'E_INVALID_OPTION')
      assert.include(error?.message, `Invalid options of ${of}: got `)
      assert.include(error?.message, `expected an object: ${takes}`)
    })
  }
})

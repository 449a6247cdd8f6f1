import { test } from '@japa/runner'
import { stores } from '../../src/define_config.ts'
import { defineStep } from '../../src/step.ts'
import type { WorkflowCtx } from '../../src/types/context.ts'
import { DurableApp } from '../support/durable_app.ts'

/** As code without types passes them. */
const options = (given: object) => given as never

/** A call with an option that does not exist, and how it is refused. */
interface Refused<On> {
  of: string
  option: string
  hint: string
  run: (on: On) => Promise<unknown>
}

test.group('Options that nobody reads', () => {
  const meant = (name: string) => `Did you mean "${name}"?`
  const calls: Refused<DurableApp>[] = [
    {
      of: 'engine.start()',
      option: 'runid',
      hint: meant('runId'),
      run: ({ engine }) => engine.start('echo', null, options({ runid: 'r1' })),
    },
    {
      of: 'engine.listRuns()',
      option: 'stauts',
      hint: meant('status'),
      run: ({ engine }) => engine.listRuns(options({ stauts: 'failed' })),
    },
    {
      of: 'engine.signal()',
      option: 'dedupe',
      hint: 'Known are id',
      run: ({ engine }) => engine.signal('go', null, options({ dedupe: 'x' })),
    },
    {
      of: 'engine.cancel()',
      option: 'compensated',
      hint: meant('compensate'),
      run: ({ engine }) => engine.cancel('r1', options({ compensated: true })),
    },
    {
      of: 'engine.waitForRun()',
      option: 'timeout',
      hint: meant('timeoutMs'),
      run: ({ engine }) => engine.waitForRun('r1', options({ timeout: 5 })),
    },
    {
      of: 'engine.register()',
      option: 'deadLeterWorkflow',
      hint: meant('deadLetterWorkflow'),
      run: async ({ engine }) =>
        engine.register('other', '1', async () => {}, options({ deadLeterWorkflow: 'x' })),
    },
    {
      of: 'step "x"',
      option: 'retrys',
      hint: meant('retries'),
      run: async () => defineStep('x', () => 0, options({ retrys: 1 })),
    },
    {
      of: 'stores.lucid()',
      option: 'conection',
      hint: meant('connection'),
      run: async () => stores.lucid(options({ conection: 'sqlite' })),
    },
  ]
  for (const { of, option, hint, run } of calls) {
    test(`${of} refuses "${option}" and does nothing`, async ({ assert, cleanup }) => {
      const app = new DurableApp()
      cleanup(() => app.close())
      app.engine.register('echo', '1', async (_, input) => input)
      const error = await run(app).catch((reason: unknown) => reason)
      assert.propertyVal(error, 'code', 'E_UNKNOWN_OPTION')
      assert.propertyVal(error, 'message', `There is no option "${option}" of ${of}. ${hint}`)
      const { runs } = await app.engine.listRuns()
      assert.deepEqual(runs, [])
    })
  }

  test('result() of a handle refuses "timeout" instead of waiting for ever', async ({
    assert,
    cleanup,
  }) => {
    const app = new DurableApp()
    cleanup(() => app.close())
    app.engine.register('echo', '1', async (_, input) => input)
    const run = await app.engine.start('echo', null)
    const error = await run.result(options({ timeout: 5 })).catch((reason: unknown) => reason)
    assert.propertyVal(error, 'code', 'E_UNKNOWN_OPTION')
  })

  const operations: Refused<WorkflowCtx>[] = [
    {
      of: 'ctx.localStep()',
      option: 'retires',
      hint: meant('retries'),
      run: (ctx) => ctx.localStep('s', () => 0, options({ retires: 0 })),
    },
    {
      of: 'ctx.step()',
      option: 'retires',
      hint: meant('retries'),
      run: (ctx) => ctx.step('s', null, options({ retires: 0 })),
    },
    {
      of: 'ctx.waitForSignal()',
      option: 'timeoutMs',
      hint: meant('timeout'),
      run: (ctx) => ctx.waitForSignal('go', options({ timeoutMs: 5 })),
    },
    {
      of: 'ctx.all()',
      option: 'concurency',
      hint: meant('concurrency'),
      run: (ctx) => ctx.all('echo', [1], options({ concurency: 1 })),
    },
    {
      of: 'ctx.allSettled()',
      option: 'mode',
      hint: 'Known are concurrency',
      run: (ctx) => ctx.allSettled('echo', [1], options({ mode: 'failFast' })),
    },
  ]
  for (const { of, option, hint, run: operation } of operations) {
    test(`${of} refuses "${option}": the run fails, and has recorded nothing`, async ({
      assert,
      cleanup,
    }) => {
      const app = new DurableApp()
      cleanup(() => app.close())
      let bodies = 0
      app.engine.register('echo', '1', async (_, input) => input)
      app.engine.register('main', '1', (ctx) => {
        bodies++
        return operation(ctx)
      })
      await app.work()
      const { runId } = await app.engine.start('main', null)
      const run = await app.engine.waitForRun(runId)
      assert.equal(run.status, 'failed')
      assert.equal(run.errorCode, 'E_UNKNOWN_OPTION')
      assert.equal(run.error?.message, `There is no option "${option}" of ${of}. ${hint}`)
      assert.equal(bodies, 1)
      const history = await app.engine.getHistory(runId)
      assert.deepEqual(history?.records, [])
    })
  }
})

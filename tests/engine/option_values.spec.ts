import { test } from '@japa/runner'
import type { WorkflowCtx } from '../../src/types/context.ts'
import { DurableApp } from '../support/durable_app.ts'

/** As code without types passes them. */
const given = (value: unknown) => value as never

test.group('Values that an option does not take', (group) => {
  let app: DurableApp
  group.each.setup(() => {
    app = new DurableApp()
    app.engine.register('echo', '1', async (_, input) => input)
    return () => app.close()
  })

  test('the facade refuses {0}, and does nothing')
    .with<[what: string, run: () => Promise<unknown>, expected: string][]>([
      [
        'a text as "compensate"',
        () => app.engine.cancel('r', { compensate: given('false') }),
        'option "compensate" of engine.cancel(): got "false", expected true or false',
      ],
      [
        'a list as "reason"',
        () => app.engine.cancel('r', { reason: given(['no']) }),
        'option "reason" of engine.cancel(): got a list, expected a text',
      ],
      [
        'a duration in words as "timeoutMs"',
        () => app.engine.waitForRun('r', { timeoutMs: given('5s') }),
        'option "timeoutMs" of engine.waitForRun(): got "5s", expected milliseconds as a number, at least 0',
      ],
      [
        'NaN as "timeoutMs"',
        () => app.engine.waitForRun('r', { timeoutMs: Number.NaN }),
        'option "timeoutMs" of engine.waitForRun(): got NaN, expected milliseconds as a number, at least 0',
      ],
      [
        'a text as "tags"',
        () => app.engine.start('echo', null, { tags: given('urgent') }),
        'option "tags" of engine.start(): got "urgent", expected a list of tags',
      ],
    ])
    .run(async ({ assert }, [, run, expected]) => {
      await app.engine.start('echo', null, 'r')
      const refused: unknown = await run().catch((reason: unknown) => reason)
      assert.propertyVal(refused, 'code', 'E_INVALID_OPTION')
      assert.propertyVal(refused, 'message', `Invalid ${expected}`)
      const { runs } = await app.engine.listRuns()
      assert.deepEqual(
        runs.map(({ id, status }) => [id, status]),
        [['r', 'pending']]
      )
    })

  test('a body refuses {0}: the run fails, and starts no child')
    .with<[what: string, run: (ctx: WorkflowCtx) => Promise<unknown>, expected: string][]>([
      [
        'half a child as "concurrency"',
        (ctx) => ctx.all('echo', [1, 2], { concurrency: 1.5 }),
        'option "concurrency" of ctx.all(): got 1.5, expected a whole number of children, at least 1',
      ],
      [
        'no children as "concurrency"',
        (ctx) => ctx.allSettled('echo', [1, 2], { concurrency: 0 }),
        'option "concurrency" of ctx.allSettled(): got 0, expected a whole number of children, at least 1',
      ],
      [
        'a "mode" that there is not',
        (ctx) => ctx.all('echo', [1, 2], { mode: given('waitall') }),
        'option "mode" of ctx.all(): got "waitall", expected "failFast" or "waitAll"',
      ],
    ])
    .run(async ({ assert }, [, operation, expected]) => {
      app.engine.register('main', '1', operation)
      await app.work()
      const { runId } = await app.engine.start('main', null)
      const { errorCode, error } = await app.engine.waitForRun(runId)
      assert.deepEqual([errorCode, error?.message], ['E_INVALID_OPTION', `Invalid ${expected}`])
      const { runs } = await app.engine.listRuns()
      assert.lengthOf(runs, 1)
    })

  test('"concurrency" may be as many as there are')
    .with([undefined, 1, Infinity])
    .run(async ({ assert }, concurrency) => {
      app.engine.register('main', '1', (ctx) => ctx.all('echo', [1, 2], { concurrency }))
      await app.work()
      const { runId } = await app.engine.start('main', null)
      const { output } = await app.engine.waitForRun(runId)
      assert.deepEqual(output, [1, 2])
    })

  test('{0} refuses what is no run id')
    .with<[string, (id: string) => Promise<unknown>][]>([
      ['getRun', (id) => app.engine.getRun(id)],
      ['getHistory', (id) => app.engine.getHistory(id)],
      ['waitForRun', (id) => app.engine.waitForRun(id)],
      ['cancel', (id) => app.engine.cancel(id)],
      ['requeue', (id) => app.engine.requeue(id)],
      ['retryWithInput', (id) => app.engine.retryWithInput(id, null)],
    ])
    .run(async ({ assert }, [, call]) => {
      for (const [id, problem] of [
        [undefined, 'of type undefined: it is not a string'],
        [{}, 'of type undefined: it is not a string'],
        [7, 'of type number: it is not a string'],
        ['', '"": it is empty'],
        ['a\u0000', '"a\\u0000": it contains a control character'],
        ['\u00e9'.repeat(257), `"${'\u00e9'.repeat(40)}...": it has over 512 bytes`],
      ]) {
        const refused: unknown = await call(given(id)).catch((reason: unknown) => reason)
        assert.propertyVal(refused, 'code', 'E_INVALID_NAME')
        assert.include(String(refused), `Invalid run id ${problem}.`)
      }
    })
})

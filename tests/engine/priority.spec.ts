import { test } from '@japa/runner'
import { PRIORITIES } from '../../src/core/run.ts'
import { E_INVALID_PRIORITY } from '../../src/errors.ts'
import { DurableApp } from '../support/durable_app.ts'

test.group('Priority of a start', () => {
  test('a priority that no worker claims is refused, and no run is stored', async ({
    assert,
    cleanup,
  }) => {
    const app = new DurableApp()
    cleanup(() => app.close())
    const { engine } = app
    const ref = engine.register('main', '1', async () => 'done')
    for (const priority of [9, -1, 1.5, Number.NaN, '1', null]) {
      const start = engine.start(ref, undefined, { priority: priority as never })
      const error: unknown = await start.catch((reason: unknown) => reason)
      assert.instanceOf(error, E_INVALID_PRIORITY, String(priority))
      assert.equal(
        (error as Error).message,
        `Invalid priority ${priority}. Use 0 (first), 1 (the default), 2 or 3`
      )
    }
    const { runs } = await engine.listRuns()
    assert.deepEqual(runs, [])
  })

  test('a retry with other input keeps the priority', async ({ assert, cleanup }) => {
    const app = new DurableApp()
    cleanup(() => app.close())
    const { engine } = app
    const ref = engine.register('main', '1', async () => 'done')
    const { runId } = await engine.start(ref, undefined, { priority: 3 })
    const retry = await engine.retryWithInput(runId, 'other')
    const run = await engine.getRun(retry?.runId ?? '')
    assert.equal(run?.priority, 3)
  })

  test('options before and behind a run id are all taken', async ({ assert, cleanup }) => {
    const app = new DurableApp()
    cleanup(() => app.close())
    const { engine } = app
    const ref = engine.register('main', '1', async () => 'done')
    await engine.start(ref, undefined, { runId: 'a', priority: 2 }, { tags: ['blue'] })
    await engine.start(ref, undefined, 'b', { runId: 'other', priority: 2 })
    const [a, b] = await Promise.all([engine.getRun('a'), engine.getRun('b')])
    assert.containSubset(a, { priority: 2, tags: ['blue'] })
    assert.equal(b?.priority, 2)
  })

  test('a run of every priority completes', async ({ assert, cleanup }) => {
    const app = new DurableApp()
    cleanup(() => app.close())
    const { engine } = app
    const ref = engine.register('main', '1', async () => 'done')
    await app.work()
    for (const priority of PRIORITIES) {
      const handle = await engine.start(ref, undefined, { priority })
      assert.equal(await handle.result(), 'done')
    }
  })
})

import { test } from '@japa/runner'
import { mock } from 'node:test'
import { DurableApp } from '../support/durable_app.ts'

test.group('Fake timers of an application', (group) => {
  group.each.setup(() => {
    mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'setImmediate', 'Date'] })
    return () => mock.timers.reset()
  })

  test('do not stop the engine: runs are stored, executed and waited for', async ({ assert }) => {
    const app = new DurableApp()
    const once = app.engine.register('once', '1', (ctx, input: number) =>
      ctx.localStep('double', () => 2 * input)
    )
    await app.engine.start(once, 1, 'before')
    await app.work()
    const handle = await app.engine.start(once, 2)
    assert.equal(await handle.result(), 4)
    const { output } = await app.engine.waitForRun('before')
    assert.equal(output, 2)
    await app.close()
  })
})

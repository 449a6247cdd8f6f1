import { test } from '@japa/runner'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { DurableApp } from '../support/durable_app.ts'

const here = fileURLToPath(import.meta.url)

test.group('Workflow written as a function', () => {
  test('another function under its name and version is refused with the files of both', async ({
    assert,
    cleanup,
  }) => {
    const app = new DurableApp()
    cleanup(() => app.close())
    app.engine.register('shop.order', '1', async () => {})
    assert.throws(
      () => app.engine.register('shop.order', '1', async () => {}),
      `Workflow "shop.order" version "1" is registered already, by ${here}, and ${here} registers it again. Rename ` +
        'one, or give it another version'
    )
  })

  test('the same function again changes nothing', async ({ assert, cleanup }) => {
    const app = new DurableApp()
    cleanup(() => app.close())
    const body = async () => 'done'
    const ref = app.engine.register('shop.order', '1', body)
    assert.deepEqual(app.engine.register('shop.order', '1', body), ref)
    assert.lengthOf(app.registry.workflows(), 1)
  })

  test('in development a suspended run wakes in the body that its file has registered since', async ({
    assert,
    cleanup,
  }) => {
    const app = new DurableApp({ inDevelopment: true })
    cleanup(() => app.close())
    const { engine } = app
    const register = (edition: string) =>
      engine.register('shop.order', '1', async (ctx) => {
        await ctx.waitForSignal('go')
        return edition
      })
    await app.work()

    const { runId } = await engine.start(register('old'), undefined)
    for (let run = await engine.getRun(runId); run?.status !== 'suspended';) {
      await nextTurn()
      run = await engine.getRun(runId)
    }
    register('new')
    await engine.signal('go')
    const { output } = await engine.waitForRun(runId)
    assert.equal(output, 'new')
  })
})

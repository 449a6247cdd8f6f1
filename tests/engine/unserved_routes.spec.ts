import { test } from '@japa/runner'
import { DurableApp } from './durable_app.ts'

test.group('Unserved routes', () => {
  test('OE-41: a process that runs no worker looks for its workflows before it answers', async ({
    assert,
    cleanup,
  }) => {
    const body = async () => null
    const app: DurableApp = new DurableApp({
      discover: async () => {
        const onError = [{ code: 'lost', workflow: 'nobody' }]
        app.engine.register('sender', '1', body, { onError })
      },
    })
    cleanup(() => app.close())
    assert.deepEqual(await app.engine.unservedOnErrorRoutes(), [
      { workflow: 'sender', code: 'lost', handler: 'nobody' },
    ])
  })
})

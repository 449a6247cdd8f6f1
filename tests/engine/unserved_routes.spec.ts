import { test } from '@japa/runner'
import { claimKey } from '../../src/core/name.ts'
import { MemoryDatabase } from '../../src/stores/memory/memory_database.ts'
import { MemoryStore } from '../../src/stores/memory/memory_store.ts'
import { DurableApp } from '../support/durable_app.ts'

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

  test('a worker whose descriptor another version wrote is passed over', async ({
    assert,
    cleanup,
  }) => {
    const store = new MemoryStore(new MemoryDatabase())
    const app = new DurableApp({ store })
    cleanup(() => app.close())
    const onError = [{ code: 'lost', workflow: 'served' }]
    app.engine.register('sender', '1', async () => null, { onError })
    const announce = (instance: string, descriptor: string) =>
      store.registerWorker({
        instance,
        name: instance,
        leaseMs: 30_000,
        descriptor,
        takeOver: false,
      })
    for (const [index, descriptor] of ['', 'null', '{"keys":[]}', '{"claimKeys":"x"}'].entries())
      await announce(`other-${index}`, descriptor)
    const unserved = [{ workflow: 'sender', code: 'lost', handler: 'served' }]
    assert.deepEqual(await app.engine.unservedOnErrorRoutes(), unserved)
    await announce('known', JSON.stringify({ claimKeys: [claimKey('default', 'served', '1')] }))
    assert.deepEqual(await app.engine.unservedOnErrorRoutes(), [])
  })
})

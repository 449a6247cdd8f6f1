import { test } from '@japa/runner'
import { MemoryDatabase } from '../../src/stores/memory/memory_database.ts'
import { MemoryStore } from '../../src/stores/memory/memory_store.ts'
import { DurableApp } from '../support/durable_app.ts'
import { Connection } from '../support/connection.ts'
import { Gate } from '../support/gate.ts'

test.group('A worker that is stopped', (group) => {
  let database: MemoryDatabase
  let connection: Connection
  group.each.setup(() => {
    database = new MemoryDatabase()
    connection = new Connection(new MemoryStore(database))
    return () => {
      connection.restore()
      connection.thaw()
    }
  })

  test('while it starts has started nothing when the stop is over', async ({ assert }) => {
    const discovering = new Gate()
    const app = new DurableApp({ store: connection.store, discover: () => discovering.pass() })
    app.engine.register('one', '1', () => 'done')
    await app.engine.start({ name: 'one', version: '1' }, null, 'r')
    const worker = app.worker()
    const starting = worker.start()
    await discovering.reached()
    const stopping = worker.stop()
    discovering.open()
    await Promise.all([starting, stopping])
    assert.deepEqual(await app.engine.listWorkers(), [])
    const run = await app.engine.getRun('r')
    assert.equal(run?.status === 'running', false)
    await worker.stop()
    await app.close()
  })

  test('before it starts does nothing when it is started', async ({ assert }) => {
    const app = new DurableApp({ store: connection.store })
    const worker = app.worker()
    await worker.stop()
    await worker.start()
    await worker.whenIdle()
    assert.deepEqual(await app.engine.listWorkers(), [])
    await app.close()
  })

  test('that could not start leaves no lease behind, and its name is free', async ({ assert }) => {
    const app = new DurableApp({ store: connection.store })
    connection.lose(new Error('away'), ['offerBlocked'])
    const worker = app.worker({ name: 'w' })
    await assert.rejects(() => worker.start(), 'away')
    assert.deepEqual(await app.engine.listWorkers(), [])
    connection.restore()
    const other = await app.work({ name: 'w' })
    assert.equal(other.description.name, 'w')
    await app.close()
  })

  test('hands back the run of a step that does not heed its abort, once a few seconds are over', async ({
    assert,
    cleanup,
  }) => {
    const deaf = new Gate()
    const app = new DurableApp({ store: connection.store, options: { drainMs: 1 } })
    cleanup(async () => {
      deaf.open()
      await app.close()
    })
    app.engine.register('main', '1', (ctx) => ctx.localStep('deaf', () => deaf.pass()))
    const worker = await app.work()
    await app.engine.start({ name: 'main', version: '1' }, null, 'r')
    await deaf.reached()
    await worker.stop()
    const run = await app.engine.getRun('r')
    assert.deepEqual([run?.status, run?.recoveryAttempts], ['suspended', 0])
  }).timeout(30_000)

  test('comes to its end while the database is away, and so does the engine', async ({
    assert,
  }) => {
    const gate = new Gate()
    const app = new DurableApp({ store: connection.store, options: { drainMs: 20 } })
    app.engine.register('long', '1', (ctx) =>
      ctx.localStep('long', ({ signal }) => gate.pass(signal))
    )
    const worker = await app.work()
    await app.engine.start({ name: 'long', version: '1' }, null, 'r')
    await gate.reached()
    connection.lose(new Error('away'))
    await worker.stop()
    await app.engine.stop()
    const [row] = await new MemoryStore(database).listWorkers()
    assert.isDefined(row)
  }).timeout(30_000)
})

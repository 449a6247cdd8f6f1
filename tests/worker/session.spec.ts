import { test } from '@japa/runner'
import { MemoryStore } from '../../src/stores/memory/memory_store.ts'
import { WorkerSession } from '../../src/worker/session.ts'
import { Connection } from '../support/connection.ts'
import { LogCapture } from '../support/log_capture.ts'
import { until } from '../support/until.ts'

const LEASE_MS = 300

test.group('Session of a worker', (group) => {
  let connection: Connection
  let store: MemoryStore
  let losses: number
  let session: WorkerSession
  group.each.setup(async () => {
    store = new MemoryStore()
    connection = new Connection(store)
    losses = 0
    session = new WorkerSession({
      store: connection.store,
      name: 'a',
      lock: { release: async () => {} },
      leaseMs: LEASE_MS,
      log: new LogCapture(),
      descriptor: () => '{}',
      onLost: () => void losses++,
    })
    await session.start()
    return async () => {
      connection.restore()
      connection.thaw()
      await session.stop()
    }
  })

  const isRecovered = async () => {
    const { workers } = await store.recoverExpired()
    return workers === 1
  }

  test('holds the lease while it renews, and not from leaseMs after the last renewal that succeeded', async ({
    assert,
  }) => {
    assert.isTrue(session.isHeld)
    await connection.called('renewWorker', 4)
    assert.isTrue(session.isHeld)
    connection.freeze(['renewWorker'])
    const from = performance.now()
    await until(() => performance.now() - from > LEASE_MS)
    assert.isFalse(session.isHeld)
  })

  test('lets the lease lapse before the store does (P2)', async ({ assert }) => {
    connection.freeze(['renewWorker'])
    await until(isRecovered)
    assert.isFalse(session.isHeld)
  })

  test('whoever asks for a lease that has lapsed waits for the next renewal', async ({
    assert,
  }) => {
    connection.freeze(['renewWorker'])
    await until(() => !session.isHeld)
    const held = session.held()
    connection.thaw()
    assert.isTrue(await held)
    assert.isTrue(session.isHeld)
    assert.equal(losses, 0)
  })

  test('a renewal that is answered when what it gives has lapsed gives nobody the lease: the next one does (P2)', async ({
    assert,
  }) => {
    connection.freeze(['renewWorker'])
    await connection.called('renewWorker', 1)
    const asked = performance.now()
    await until(() => performance.now() - asked > LEASE_MS)
    const held = session.held()
    connection.thaw()
    assert.isTrue(await held)
    assert.isTrue(session.isHeld)
  })

  test('a lease that others have recovered is lost to whoever asks, and a new instance follows', async ({
    assert,
  }) => {
    const owner = session.owner
    connection.freeze(['renewWorker'])
    await until(isRecovered)
    const held = session.held()
    connection.thaw()
    assert.isFalse(await held)
    assert.equal(losses, 1)
    await until(() => session.isHeld)
    assert.notEqual(session.owner, owner)
  })

  test('is not healthy while the lease is not held, nor for what came before', async ({
    assert,
  }) => {
    await until(() => session.healthyMs > LEASE_MS)
    connection.freeze(['renewWorker'])
    await until(() => !session.isHeld)
    assert.equal(session.healthyMs, 0)
    connection.thaw()
    const returned = performance.now()
    await until(() => session.healthyMs >= LEASE_MS)
    assert.isAtLeast(performance.now() - returned, LEASE_MS)
  })

  test('is not healthy after a renewal that failed until leaseMs of renewals that succeeded', async ({
    assert,
  }) => {
    await until(() => session.healthyMs > LEASE_MS)
    connection.lose(new Error('away'), ['renewWorker'])
    await connection.called('renewWorker', 2)
    assert.equal(session.healthyMs, 0)
    connection.restore()
    const returned = performance.now()
    await until(() => session.healthyMs >= LEASE_MS)
    assert.isAtLeast(performance.now() - returned, LEASE_MS)
  })

  test('is over though its row and its name cannot be given back, and says so', async ({
    assert,
  }) => {
    const log = new LogCapture()
    const away = new Error('away')
    const ending = new WorkerSession({
      store: connection.store,
      name: 'b',
      lock: { release: () => Promise.reject(away) },
      leaseMs: LEASE_MS,
      log,
      descriptor: () => '{}',
      onLost: () => {},
    })
    await ending.start()
    connection.lose(away, ['removeWorker'])
    await ending.stop()
    assert.deepEqual(
      log.lines.map(({ level, args }) => [level, args[0]]),
      [
        ['warn', { err: away }],
        ['warn', { err: away }],
      ]
    )
    connection.restore()
  })
})

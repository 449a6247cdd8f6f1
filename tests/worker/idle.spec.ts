import { test } from '@japa/runner'
import { setImmediate as nextRound } from 'node:timers/promises'
import { MemoryDatabase } from '../../src/stores/memory/memory_database.ts'
import { MemoryStore } from '../../src/stores/memory/memory_store.ts'
import { internalsOf } from '../../src/engine/engine.ts'
import { Connection } from '../support/connection.ts'
import { DurableApp } from '../support/durable_app.ts'
import { Gate } from '../support/gate.ts'
import { until } from '../support/until.ts'

/** A store whose claims answer only when they are let, as one across a network does. */
class SlowClaimStore extends MemoryStore {
  readonly taken = Promise.withResolvers<void>()
  readonly answers = Promise.withResolvers<void>()

  override async claim(...params: Parameters<MemoryStore['claim']>) {
    const rows = await super.claim(...params)
    this.taken.resolve()
    await this.answers.promise
    return rows
  }
}

/** Counts the looks for the next due time. */
class CountingStore extends MemoryStore {
  looks = 0

  override async nextDueIn(...params: Parameters<MemoryStore['nextDueIn']>) {
    this.looks++
    return super.nextDueIn(...params)
  }
}

test.group('An idle worker', () => {
  test('is not idle while a claim is under way that has taken a run', async ({ assert }) => {
    const store = new SlowClaimStore(new MemoryDatabase())
    const app = new DurableApp({ store })
    app.engine.register('greet', '1', (ctx) => ctx.localStep('greet', () => 'hello'))
    await app.engine.start('greet', null, 'r')

    const worker = await app.work()
    await store.taken.promise
    let isIdle = false
    const idle = worker.whenIdle().then(() => (isIdle = true))
    for (let round = 0; round < 50; round++) await nextRound()
    assert.isFalse(isIdle)

    store.answers.resolve()
    await idle
    const run = await app.engine.getRun('r')
    assert.equal(run?.status, 'completed')
    await app.close()
  })

  test('wakes a run in time that slept while all slots were taken (P9)', async ({
    assert,
    cleanup,
  }) => {
    const store = new CountingStore(new MemoryDatabase())
    const app = new DurableApp({ store, options: { pollMs: 60_000, idlePollMs: 60_000 } })
    cleanup(() => app.close())
    const gate = new Gate()
    const sleeper = app.engine.register('sleeper', '1', (ctx) => ctx.sleep(300))
    const holder = app.engine.register('holder', '1', (ctx) =>
      ctx.localStep('hold', () => gate.pass())
    )
    await app.work({ concurrency: 1 })
    await app.engine.start(sleeper, undefined, 'asleep')
    await until(async () => {
      const run = await app.engine.getRun('asleep')
      return run?.status === 'suspended'
    })
    await app.engine.start(holder, undefined, 'holds')
    await gate.reached()
    const before = store.looks
    internalsOf(app.engine).news.anything()
    await until(() => store.looks > before)
    gate.open()
    const run = await app.engine.waitForRun('asleep', { timeoutMs: 20_000 })
    assert.equal(run.status, 'completed')
  })

  test('is no longer waited for once it is being stopped, though something is due', async ({
    assert,
    cleanup,
  }) => {
    const gate = new Gate()
    const app = new DurableApp({ options: { drainMs: 1 } })
    cleanup(() => app.close())
    app.engine.register('stuck', '1', (ctx) =>
      ctx.localStep('stuck', ({ signal }) => gate.pass(signal))
    )
    await app.engine.start('stuck', null, 'r')
    const worker = await app.work()
    const idle = worker.whenIdle()
    await gate.reached()
    await worker.stop()
    await idle
    const run = await app.engine.getRun('r')
    assert.equal(run?.status, 'suspended')
  })

  test('is waited for while the database does not say what is due', async ({ assert, cleanup }) => {
    const connection = new Connection(new MemoryStore(new MemoryDatabase()))
    const app = new DurableApp({ store: connection.store })
    cleanup(() => app.close())
    app.engine.register('greet', '1', () => 'hello')
    const worker = await app.work()
    connection.lose(new Error('away'), ['nextDueIn', 'claim'])
    await app.engine.start('greet', null, 'r')
    const idle = worker.whenIdle()
    await connection.called('nextDueIn', 2)
    connection.restore()
    await idle
    const run = await app.engine.getRun('r')
    assert.equal(run?.status, 'completed')
  })
})

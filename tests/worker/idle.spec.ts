import { test } from '@japa/runner'
import { setImmediate as nextRound } from 'node:timers/promises'
import { MemoryDatabase } from '../../src/stores/memory/memory_database.ts'
import { MemoryStore } from '../../src/stores/memory/memory_store.ts'
import { DurableApp } from '../support/durable_app.ts'

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
})

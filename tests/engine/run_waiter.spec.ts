import { test } from '@japa/runner'
import { MemoryDatabase } from '../../src/stores/memory/memory_database.ts'
import { MemoryStore } from '../../src/stores/memory/memory_store.ts'
import { DurableApp } from '../support/durable_app.ts'

class UnopenableStore extends MemoryStore {
  openings = 0

  override async open(): Promise<void> {
    this.openings++
    throw new Error('no such connection')
  }
}

test.group('Whoever waits for a run', () => {
  test('is refused when the store cannot be opened, which is tried once for each', async ({
    assert,
  }) => {
    const store = new UnopenableStore(new MemoryDatabase())
    const { engine } = new DurableApp({ store })
    await assert.rejects(() => engine.waitForRun('r'), 'no such connection')
    assert.equal(store.openings, 1)
    const both = [engine.waitForRun('r'), engine.waitForRun('s')].map((end) =>
      end.catch(({ message }: Error) => message)
    )
    assert.deepEqual(await Promise.all(both), ['no such connection', 'no such connection'])
    assert.equal(store.openings, 2)
    await engine.stop()
  })
})

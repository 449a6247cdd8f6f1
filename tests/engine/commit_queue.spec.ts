import { test } from '@japa/runner'
import type { Flush } from '../../src/contracts/store.ts'
import type { StartWrite, Write } from '../../src/core/change_set.ts'
import { CommitQueue } from '../../src/engine/commit_queue.ts'
import { RunNews } from '../../src/engine/news.ts'
import { MemoryDatabase } from '../../src/stores/memory/memory_database.ts'
import { MemoryStore } from '../../src/stores/memory/memory_store.ts'
import { storedRun } from '../worker/stored_run.ts'

/** Notes its batches, each of which waits to be let through. */
class GatedStore extends MemoryStore {
  override isElsewhere = true
  readonly batches: string[][] = []
  #answers: (() => void)[] = []

  override async commit(writes: readonly Write[]): Promise<Flush> {
    this.batches.push(writes.map((write) => (write.type === 'start' ? write.run.id : write.type)))
    await new Promise<void>((resolve) => this.#answers.push(resolve))
    return super.commit(writes)
  }

  async answer(): Promise<void> {
    while (this.#answers.length === 0) await new Promise((resolve) => setImmediate(resolve))
    this.#answers.shift()?.()
  }
}

const start = (id: string): StartWrite => storedRun('one', { id })

test.group('The commit queue', (group) => {
  let store: GatedStore
  let queue: CommitQueue
  group.each.setup(() => {
    store = new GatedStore(new MemoryDatabase())
    queue = new CommitQueue({ store: async () => store, news: new RunNews() })
  })

  test('sends half of what waits to an idle store elsewhere, and the rest with what came meanwhile: the one works while the other does', async ({
    assert,
  }) => {
    const first = ['a', 'b', 'c', 'd', 'e'].map((id) => queue.write(start(id)))
    await store.answer()
    await first[0]
    const next = queue.write(start('f'))
    await store.answer()
    await Promise.all([...first, next])
    await queue.idle()
    assert.deepEqual(store.batches, [
      ['a', 'b', 'c'],
      ['d', 'e', 'f'],
    ])
  })

  test('sends all of it to a store that works in this process: the one waits for the other anyway', async ({
    assert,
  }) => {
    store.isElsewhere = false
    const writes = ['a', 'b', 'c'].map((id) => queue.write(start(id)))
    await store.answer()
    await Promise.all(writes)
    assert.deepEqual(store.batches, [['a', 'b', 'c']])
  })

  test('has one batch in flight at a time', async ({ assert }) => {
    const writes = ['a', 'b', 'c'].map((id) => queue.write(start(id)))
    while (store.batches.length === 0) await new Promise((resolve) => setImmediate(resolve))
    writes.push(queue.write(start('d')))
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
    assert.lengthOf(store.batches, 1)
    await store.answer()
    await store.answer()
    await Promise.all(writes)
    assert.deepEqual(store.batches.flat(), ['a', 'b', 'c', 'd'])
  })
})

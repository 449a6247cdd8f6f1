import { test } from '@japa/runner'
import type { Flush } from '../../src/contracts/store.ts'
import type { AnswerTo, StartWrite, Write } from '../../src/core/change_set.ts'
import { CommitQueue } from '../../src/engine/commit_queue.ts'
import { RunNews } from '../../src/engine/news.ts'
import {
  E_ENGINE_STOPPED,
  E_INTERNAL,
  E_TOO_MANY_WRITES,
  E_UNREADABLE_PAYLOAD,
} from '../../src/errors.ts'
import { MemoryDatabase } from '../../src/stores/memory/memory_database.ts'
import { MemoryStore } from '../../src/stores/memory/memory_store.ts'
import { record, turn } from '../../src/testing/conformance/writes.ts'
import { storedRun } from '../support/stored_run.ts'

/** Notes its batches, each of which waits to be let through. */
class GatedStore extends MemoryStore {
  override isElsewhere = true
  readonly batches: string[][] = []
  /** What the next commits fail with, one after the other. */
  readonly failures: Error[] = []
  /** Run of a write on which the code of the store fails. */
  broken: string | null = null
  /** Applies what it gives no answer to. */
  forgets = false
  #answers: (() => void)[] = []
  #isOpen = false

  override async commit(writes: readonly Write[]): Promise<Flush> {
    const failure = this.failures.shift()
    if (failure) throw failure
    if (this.broken !== null && writes.some((write) => idOf(write) === this.broken))
      throw new TypeError('not a function')
    this.batches.push(writes.map((write) => (write.type === 'start' ? write.run.id : write.type)))
    if (!this.#isOpen) await new Promise<void>((resolve) => this.#answers.push(resolve))
    const flush = await super.commit(writes)
    return this.forgets ? { ...flush, answers: [] } : flush
  }

  /** Every batch goes through from now on. */
  letThrough(): void {
    this.#isOpen = true
    for (const answer of this.#answers.splice(0)) answer()
  }

  async answer(): Promise<void> {
    while (this.#answers.length === 0) await new Promise((resolve) => setImmediate(resolve))
    this.#answers.shift()?.()
  }
}

function idOf(write: Write): string | null {
  if (write.type === 'start') return write.run.id
  return 'runId' in write ? write.runId : null
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
    for (let round = 0; round < 20; round++) await new Promise((resolve) => setImmediate(resolve))
    assert.lengthOf(store.batches, 1)
    await store.answer()
    await store.answer()
    await Promise.all(writes)
    assert.deepEqual(store.batches.flat(), ['a', 'b', 'c', 'd'])
  })

  test('gives each write the answer of its kind', async ({ assert, expectTypeOf }) => {
    store.letThrough()
    const started = await queue.write(start('a'))
    expectTypeOf(started).toEqualTypeOf<AnswerTo<StartWrite>>()
    expectTypeOf(started.type).toEqualTypeOf<'started'>()
    const woken = await queue.write({ type: 'wake', runId: 'a' })
    expectTypeOf(woken.type).toEqualTypeOf<'woken'>()
    const lost = await queue.write(turn({ id: 'a', token: 7 }))
    expectTypeOf(lost.type).toEqualTypeOf<'committed' | 'lost' | 'refused'>()
    assert.deepEqual([started.type, woken.type, lost.type], ['started', 'woken', 'lost'])
  })

  test('what the database refuses is an answer to a turn, and an error to a caller', async ({
    assert,
  }) => {
    store.isElsewhere = false
    store.letThrough()
    await queue.write(storedRun('one', { id: 'r', leaseTo: 'w1' }))
    const colliding = turn({ id: 'r', token: 1 }, { records: [record(0), record(0)] })
    const ofCaller = queue.write({ type: 'wake', runId: 'r' })
    const [ofTurn] = await Promise.all([
      queue.write(colliding),
      assert.rejects(() => ofCaller, /has a record at position 0/),
    ])
    assert.equal(ofTurn.type, 'refused')
  })

  test('sends or refuses what comes while an opening that failed is told, at every moment of that', async ({
    assert,
  }) => {
    for (let moment = 0; moment < 12; moment++) {
      const refused = new Error('away')
      let openings = 0
      const openStore = async () => {
        if (openings++ === 0) throw refused
        return new MemoryStore(new MemoryDatabase())
      }
      queue = new CommitQueue({ store: openStore, news: new RunNews() })
      const first = queue.write(start('a')).catch((error: unknown) => error)
      for (let microtask = 0; microtask < moment; microtask++) await null
      const late = queue.write(start('b')).then(
        ({ type }) => type,
        (error: unknown) => error
      )
      assert.equal(await first, refused)
      const came = await late
      assert.isTrue(came === refused || came === 'started', `after ${moment} microtasks`)
    }
  })

  test('keeps writes of turns while the database is away, in their order, and refuses those of callers', async ({
    assert,
  }) => {
    store.isElsewhere = false
    const away = new Error('away')
    store.failures.push(away)
    const lost = turn({ id: 'r', token: 1 })
    const kept = [queue.write(lost), queue.write({ ...lost, token: 2 })]
    const refused = queue.write(start('a')).catch((error: unknown) => error)
    assert.equal(await refused, away)
    await store.answer()
    const answers = await Promise.all(kept)
    assert.deepEqual(
      answers.map(({ type }) => type),
      ['lost', 'lost']
    )
  })

  test('a write on which our own code fails is rejected, of a turn too, and holds up no other', async ({
    assert,
  }) => {
    store.letThrough()
    store.broken = 'bad'
    const writes = [start('bad'), start('a'), turn({ id: 'bad', token: 1 }), start('b')]
    const results = await Promise.allSettled(writes.map((write) => queue.write(write)))
    const [ofCaller, , ofTurn] = results
    for (const result of [ofCaller, ofTurn])
      assert.instanceOf(result?.status === 'rejected' && result.reason, TypeError)
    assert.deepEqual(store.batches, [['a'], ['b']])
    await queue.idle()
    store.broken = null
    const again = await queue.write(start('bad'))
    assert.equal(again.type, 'started')
  })

  test('a record that our own code cannot read again is such a fault', async ({ assert }) => {
    store.letThrough()
    await queue.write(storedRun('one', { id: 'bad', leaseTo: 'w1' }))
    const unreadable = record(0, { kind: 'attributes', output: 'no JSON' })
    const ofTurn = queue.write(turn({ id: 'bad', token: 1 }, { records: [unreadable] }))
    const other = queue.write(start('a'))
    await assert.rejects(() => ofTurn, E_UNREADABLE_PAYLOAD)
    const answer = await other
    assert.equal(answer.type, 'started')
  })

  test('writes that are applied and not answered are rejected, and not sent again', async ({
    assert,
  }) => {
    store.isElsewhere = false
    store.letThrough()
    store.forgets = true
    const writes = ['a', 'b'].map((id) => queue.write(start(id)))
    const results = await Promise.allSettled(writes)
    for (const result of results)
      assert.instanceOf(result.status === 'rejected' && result.reason, E_INTERNAL)
    assert.deepEqual(store.batches, [['a', 'b']])
  })

  test('that is closed while the database does not answer refuses what waits, and what comes later', async ({
    assert,
  }) => {
    store.isElsewhere = false
    const inFlight = queue.write(start('a'))
    while (store.batches.length === 0) await new Promise((resolve) => setImmediate(resolve))
    const waiting = queue.write(start('b'))
    const [waited] = await Promise.all([waiting.catch((error: unknown) => error), queue.close(5)])
    assert.instanceOf(waited, E_ENGINE_STOPPED)
    await assert.rejects(() => queue.write(start('c')), E_ENGINE_STOPPED)
    await store.answer()
    await inFlight
  })

  test('refuses callers, not turns, while more waits than memory should hold', async ({
    assert,
  }) => {
    const input = 'x'.repeat(100 * 1024 * 1024)
    const writes = Array.from({ length: 6 }, (_, index) =>
      queue.write(storedRun('one', { id: `r${index}`, input }))
    )
    await assert.rejects(() => queue.write(start('late')), E_TOO_MANY_WRITES)
    const kept = queue.write(turn({ id: 'r0', token: 9 }))
    store.letThrough()
    await Promise.all([...writes, kept])
    const after = await queue.write(start('late'))
    assert.equal(after.type, 'started')
  })
})

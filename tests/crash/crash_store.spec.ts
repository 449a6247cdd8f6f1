import { test } from '@japa/runner'
import type { Write } from '../../src/core/change_set.ts'
import { MemoryStore } from '../../src/stores/memory/memory_store.ts'
import { CLAIM_KEY, newWorker, start } from '../../src/testing/conformance/writes.ts'
import { type CrashMoment, crashingStore } from '../../src/testing/crash_store.ts'

test.group('Crashing store', () => {
  /** A store that dies at its second write, which stores the run `r2`; and what was seen at its death. */
  function dying(moment: CrashMoment) {
    const database = new MemoryStore()
    const seen: { isStored: boolean; isAnswered: boolean }[] = []
    const answers: string[] = []
    const death = Promise.withResolvers<void>()
    const kill = () => {
      const isStored = database.database.runs.get('r2') !== undefined
      seen.push({ isStored, isAnswered: answers.includes('r2') })
      death.resolve()
    }
    const { store } = crashingStore(database, { point: { moment, write: 2 }, kill })
    const save = async (id: string) => {
      await store.commit([start(id)])
      answers.push(id)
    }
    return { seen, save, died: death.promise }
  }

  for (const [moment, picture] of [
    ['before', { isStored: false, isAnswered: false }],
    ['answered', { isStored: true, isAnswered: false }],
    ['after', { isStored: true, isAnswered: true }],
  ] as const)
    test(`kills ${moment} the chosen write`, async ({ assert }) => {
      const { seen, save, died } = dying(moment)
      await save('r1')
      assert.deepEqual(seen, [])
      await save('r2')
      await died
      assert.deepEqual(seen, [picture])
    })

  test('counts commits that carry writes, claims that took runs and announcements of workers, and nothing else', async ({
    assert,
  }) => {
    const crashing = crashingStore(new MemoryStore(), { point: null })
    const { store } = crashing
    const claim = () => store.claim({ owner: 'w1', claimKeys: [CLAIM_KEY], limit: 5 })
    await store.registerWorker(newWorker('w1'))
    assert.equal(crashing.writes, 1)
    await store.renewWorker('w1')
    await store.recoverExpired()
    await store.commit([])
    await claim()
    assert.equal(crashing.writes, 1)
    await store.commit([start('r1'), start('r2')])
    assert.equal(crashing.writes, 2)
    await claim()
    assert.equal(crashing.writes, 3)
  })

  test('kills before a claim only if it would take runs', async ({ assert }) => {
    let kills = 0
    const kill = () => void kills++
    const point = { moment: 'before', write: 2 } as const
    const { store } = crashingStore(new MemoryStore(), { point, kill })
    const claim = () => store.claim({ owner: 'w1', claimKeys: [CLAIM_KEY], limit: 5 })
    await claim()
    await store.commit([start('r1')])
    assert.equal(kills, 0)
    await claim()
    assert.equal(kills, 1)
  })

  test('kills before a write that begins while another one is under way', async ({ assert }) => {
    const database = new MemoryStore()
    const answer = Promise.withResolvers<void>()
    const slow = new Proxy(database, {
      get(target, key) {
        const own: unknown = Reflect.get(target, key)
        if (key !== 'commit') return typeof own === 'function' ? own.bind(target) : own
        return (writes: readonly Write[]) => answer.promise.then(() => target.commit(writes))
      },
    })
    let kills = 0
    const point = { moment: 'before', write: 2 } as const
    const { store } = crashingStore(slow, { point, kill: () => void kills++ })
    const saves = [store.commit([start('r1')])]
    assert.equal(kills, 0)
    saves.push(store.commit([start('r2')]))
    assert.equal(kills, 1)
    answer.resolve()
    await Promise.all(saves)
    assert.equal(kills, 1)
  })
})

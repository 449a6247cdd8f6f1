import { test } from '@japa/runner'
import { DueQueue } from '../../src/stores/memory/due_queue.ts'
import { RandomSource } from '../core/random_source.ts'

/** Ids of what is due at `now`, in the order in which it is given. */
function drain(queue: DueQueue, now: number): string[] {
  const ids: string[] = []
  for (let entry = queue.takeDue(now); entry; entry = queue.takeDue(now)) ids.push(entry.runId)
  return ids
}

test.group('DueQueue', () => {
  test('gives what is due by time, then by arrival', ({ assert }) => {
    const queue = new DueQueue()
    for (const [runId, dueAt] of Object.entries({ c: 3, a: 1, b: 2, d: 3, later: 9 }))
      queue.set(runId, dueAt)
    assert.deepEqual(drain(queue, 5), ['a', 'b', 'c', 'd'])
    assert.equal(queue.peek()?.runId, 'later')
  })

  test('forgets the earlier time of a run that gets another, and a removed run', ({ assert }) => {
    const queue = new DueQueue()
    queue.set('moved', 1)
    queue.set('removed', 2)
    queue.set('moved', 8)
    queue.delete('removed')
    assert.deepEqual(drain(queue, 5), [])
    assert.deepEqual(drain(queue, 8), ['moved'])
    assert.isUndefined(queue.peek())
  })

  test('puts an entry back where it was', ({ assert }) => {
    const queue = new DueQueue()
    for (const runId of ['a', 'b', 'c']) queue.set(runId, 1)
    const first = queue.takeDue(1)
    assert.equal(first?.runId, 'a')
    if (first) queue.restore(first)
    assert.deepEqual(drain(queue, 1), ['a', 'b', 'c'])
  })

  test('agrees with a sorted list after any number of changes', ({ assert }) => {
    for (let seed = 0; seed < 20; seed++) {
      const random = new RandomSource(seed)
      const queue = new DueQueue()
      const expected = new Map<string, number>()
      for (let change = 0; change < 2_000; change++) {
        const runId = `r${random.below(30)}`
        if (random.chance(0.2)) {
          queue.delete(runId)
          expected.delete(runId)
        } else {
          const dueAt = random.below(1_000)
          queue.set(runId, dueAt)
          expected.set(runId, dueAt)
        }
        if (expected.size > 0) assert.equal(queue.peek()?.dueAt, Math.min(...expected.values()))
      }
      const ids = drain(queue, 1_000)
      assert.sameMembers(ids, [...expected.keys()], `seed ${seed}`)
      const times = ids.map((id) => expected.get(id) ?? 0)
      assert.deepEqual(
        times,
        times.toSorted((a, b) => a - b)
      )
    }
  })
})

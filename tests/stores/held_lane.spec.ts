import { test } from '@japa/runner'
import type { Answer } from '../../src/core/change_set.ts'
import { E_STORE_BUSY } from '../../src/errors.ts'
import { HeldLane } from '../../src/stores/lucid/postgres/held_lane.ts'
import { Notices } from '../../src/stores/lucid/postgres/notices.ts'

const LOCKED = Object.assign(new Error('canceling statement due to lock timeout'), {
  code: '55P03',
})

/** A lane whose every attempt fails, and whose callers are told at once. */
function failingLane(
  params: { onEmpty?: () => Promise<void>; errors?: readonly Error[] } = {}
): HeldLane {
  const errors = (params.errors ?? []).values()
  return new HeldLane({
    session: () => Promise.reject(errors.next().value ?? LOCKED),
    onEmpty: params.onEmpty ?? (() => Promise.resolve()),
    notices: new Notices('here'),
    limitMs: -1,
    onNews: () => {},
  })
}

function waitFor(lane: HeldLane, runId: string): Promise<unknown> {
  const answer: Answer = lane.add({ type: 'wake', runId })
  if (answer.type !== 'held') throw new Error(`The answer is ${answer.type}`)
  return answer.answer.catch((error: unknown) => error)
}

test.group('PostgreSQL writes that wait in the lane', () => {
  test('a write is tried that comes while the lane closes its connection', async ({ assert }) => {
    const closing = Promise.withResolvers<void>()
    const closed = Promise.withResolvers<void>()
    const lane = failingLane({
      onEmpty: () => {
        closing.resolve()
        return closed.promise
      },
    })
    await waitFor(lane, 'r1')
    await closing.promise
    const second = waitFor(lane, 'r2')
    closed.resolve()
    assert.instanceOf(await second, E_STORE_BUSY)
  })

  test('a write is tried that comes right after the lane has closed its connection', async ({
    assert,
  }) => {
    for (let turns = 0; turns < 10; turns++) {
      const closing = Promise.withResolvers<void>()
      const closed = Promise.withResolvers<void>()
      const lane = failingLane({
        onEmpty: () => {
          closing.resolve()
          return closed.promise
        },
      })
      await waitFor(lane, 'r1')
      await closing.promise
      closed.resolve()
      for (let turn = 0; turn < turns; turn++) await null
      assert.instanceOf(await waitFor(lane, 'r2'), E_STORE_BUSY, `after ${turns} microtasks`)
    }
  })

  test('a connection that cannot be closed does not keep later writes waiting', async ({
    assert,
  }) => {
    const lane = failingLane({ onEmpty: () => Promise.reject(new Error('gone')) })
    assert.instanceOf(await waitFor(lane, 'r1'), E_STORE_BUSY)
    assert.instanceOf(await waitFor(lane, 'r2'), E_STORE_BUSY)
    await lane.close()
  })
})

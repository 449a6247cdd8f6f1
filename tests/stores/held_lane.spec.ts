import { test } from '@japa/runner'
import type { Answer, Write } from '../../src/core/change_set.ts'
import { E_ENGINE_STOPPED, E_INTERNAL, E_STORE_BUSY } from '../../src/errors.ts'
import { Doubts } from '../../src/stores/lucid/postgres/doubts.ts'
import { HeldLane } from '../../src/stores/lucid/postgres/held_lane.ts'
import { Notices } from '../../src/stores/lucid/postgres/notices.ts'
import { turn } from '../../src/testing/conformance/writes.ts'

const HOUR = 3_600_000
const LOCKED = failure('55P03', 'canceling statement due to lock timeout')

/** A lane whose every attempt fails, and whose callers are told at once. */
function failingLane(
  params: {
    onEmpty?: () => Promise<void>
    /** What the first attempts fail with. */
    errors?: readonly Error[]
    warn?: (message: string) => void
    limitMs?: number
  } = {}
): HeldLane {
  const errors = (params.errors ?? []).values()
  return new HeldLane({
    session: () => Promise.reject(errors.next().value ?? LOCKED),
    onEmpty: params.onEmpty ?? (() => Promise.resolve()),
    notices: new Notices('here'),
    doubts: new Doubts(),
    limitMs: params.limitMs ?? -1,
    onNews: () => {},
    warn: params.warn ?? (() => {}),
  })
}

function failure(code: string, message: string): Error {
  return Object.assign(new Error(message), { code })
}

function waitFor(lane: HeldLane, runId: string): Promise<unknown> {
  return answerTo(lane, { type: 'wake', runId })
}

function answerTo(lane: HeldLane, write: Write): Promise<unknown> {
  const answer: Answer = lane.add(write)
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
      for (let microtask = 0; microtask < turns; microtask++) await null
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

  test('what it cannot write is told once for each kind of error, and held rows are not', async ({
    assert,
  }) => {
    const told: string[] = []
    const full = failure('53100', 'could not extend file')
    const deadlock = failure('40P01', 'deadlock detected')
    const lane = failingLane({
      errors: [LOCKED, full, full, deadlock, full],
      warn: (message) => told.push(message),
      limitMs: 500,
    })
    assert.instanceOf(await waitFor(lane, 'r1'), E_STORE_BUSY)
    assert.lengthOf(told, 2)
    assert.match(told[0] ?? '', /could not extend file/)
    assert.match(told[1] ?? '', /deadlock detected/)
  })

  test('a write on which our own code fails is rejected, of a turn too, and others go on waiting', async ({
    assert,
  }) => {
    const lane = failingLane({ errors: [new E_INTERNAL(['no'])], limitMs: HOUR })
    const bad = answerTo(lane, turn({ id: 'r1', token: 1 }))
    const others = waitFor(lane, 'r2')
    assert.instanceOf(await bad, E_INTERNAL)
    await lane.close()
    assert.instanceOf(await others, E_ENGINE_STOPPED)
  })

  test('it is told again of a failure that comes after everything had been written', async ({
    assert,
  }) => {
    const told: string[] = []
    const full = failure('53100', 'could not extend file')
    const lane = failingLane({ errors: [full, full], warn: (message) => told.push(message) })
    for (const runId of ['r1', 'r2']) {
      await waitFor(lane, runId)
      await new Promise(setImmediate)
    }
    assert.lengthOf(told, 2)
  })

  test('a write whose answer nobody has taken may fail', async ({ assert, cleanup }) => {
    const unheard: unknown[] = []
    const listen = (reason: unknown) => unheard.push(reason)
    process.on('unhandledRejection', listen)
    cleanup(() => void process.off('unhandledRejection', listen))
    const lane = failingLane({ limitMs: HOUR })
    lane.add({ type: 'wake', runId: 'r1' })
    await lane.close()
    await new Promise(setImmediate)
    assert.deepEqual(unheard, [])
  })
})

import { test } from '@japa/runner'
import type { LoadedRun } from '../../src/contracts/store.ts'
import type { InboxEntry } from '../../src/core/history.ts'
import { RunNews } from '../../src/engine/news.ts'
import { Outside } from '../../src/engine/outside.ts'
import { StoreClock } from '../../src/engine/store_clock.ts'
import type { OutsideEvent } from '../../src/replay/operation.ts'
import { LogCapture } from '../support/log_capture.ts'

type Told = Exclude<OutsideEvent, { type: 'due' }>

const NOW = 1_000_000

function entry(no: number): InboxEntry {
  return {
    kind: 'child',
    no,
    receivedAt: NOW,
    seq: 0,
    index: no,
    childId: `c${no}`,
    event: 'completed',
  }
}

function inbox(...numbers: number[]): LoadedRun {
  const nothing = { input: null, error: null, history: [], undone: [], waits: [] }
  return { runId: 'r', ...nothing, inbox: numbers.map(entry), now: NOW }
}

/** A turn that waits for something due long ago, whose inbox is read when the test says so. */
function waiting() {
  const reads: PromiseWithResolvers<LoadedRun[]>[] = []
  const told: number[] = []
  let armed = 0
  const turn = {
    isOver: false,
    awaitsOutside: true,
    get nextDueAt() {
      armed++
      return NOW - 1
    },
    deliver: (events: readonly Told[]) => told.push(...events.map((event) => event.entry.no)),
    elapse: () => {},
  }
  const load = () => {
    const read = Promise.withResolvers<LoadedRun[]>()
    reads.push(read)
    return read.promise
  }
  const clock = new StoreClock()
  const log = new LogCapture()
  clock.read(NOW)
  const outside = new Outside({
    ...{ runId: 'r', turn, store: { load }, news: new RunNews(), clock, log },
    ...{ idlePollMs: 60_000, inboxLoaded: 0 },
  })
  return { outside, reads, told, log, timesArmed: () => armed }
}

/** What has been answered has been used. */
const macrotask = () => new Promise((resolve) => setImmediate(resolve))

test.group('Outside', () => {
  test('a look that is under way when it is closed tells the turn nothing, and no other follows', async ({
    assert,
  }) => {
    const { outside, reads, told, timesArmed } = waiting()
    outside.open(inbox(1), 1)
    outside.look()
    outside.close()
    reads[0]?.resolve([inbox(2)])
    await macrotask()
    assert.deepEqual(told, [1])
    assert.equal(outside.inboxLoaded, 1)
    assert.equal(timesArmed(), 0)
    assert.lengthOf(reads, 1)
  })

  test('a look from before it was closed tells what is new when it has been opened again', async ({
    assert,
  }) => {
    const { outside, reads, told } = waiting()
    outside.open(inbox(1), 1)
    outside.look()
    outside.close()
    outside.open(inbox(2), 2)
    reads[0]?.resolve([inbox(2, 3)])
    await macrotask()
    assert.deepEqual(told, [1, 2, 3])
    outside.close()
  })

  test('a look that is asked for while another ends is not forgotten', async ({ assert }) => {
    for (let microtasks = 0; microtasks < 10; microtasks++) {
      const { outside, reads } = waiting()
      outside.open(inbox(), 0)
      outside.look()
      reads[0]?.resolve([inbox(1)])
      for (let index = 0; index < microtasks; index++) await Promise.resolve()
      outside.look()
      await macrotask()
      assert.lengthOf(reads, 2, `asked for after ${microtasks} microtasks`)
      outside.close()
    }
  })

  test('a look that fails is said once, and tried again after a pause until it succeeds', async ({
    assert,
  }) => {
    const { outside, reads, told, log } = waiting()
    outside.open(inbox(), 0)
    outside.look()
    const begin = performance.now()
    for (const attempt of [0, 1]) {
      reads[attempt]?.reject(new Error('away'))
      while (reads.length < attempt + 2) await macrotask()
    }
    assert.isAtLeast(performance.now() - begin, 900)
    reads[2]?.resolve([inbox(1)])
    await macrotask()
    assert.deepEqual(told, [1])
    assert.lengthOf(log.lines, 1)
    outside.close()
  })
})

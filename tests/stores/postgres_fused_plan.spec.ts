import { test } from '@japa/runner'
import type { Write } from '../../src/core/change_set.ts'
import { fusedPlan } from '../../src/stores/lucid/postgres/fused_plan.ts'
import {
  COMPLETE,
  FAIL,
  newRun,
  parentLink,
  record,
  RELEASE,
  signal,
  signalSend,
  sleep,
  start,
  startLeased,
  SUSPEND,
  suspendOnEnds,
  turn,
  waitForChild,
  waitForSignal,
} from '../../src/testing/conformance/writes.ts'

const plan = (...writes: Write[]) => fusedPlan(writes, { mayHaveParent: (id) => id !== 'single' })
const r1 = { id: 'r1', token: 1 }
const childOf = (runId: string, id: string) => ({
  run: newRun(id, { parent: parentLink(runId) }),
  acknowledge: false,
})

test.group('PostgreSQL batches of one statement', () => {
  const hot: Record<string, Write[]> = {
    'starts, leased or not, with tags': [
      start('a', { tags: ['x'] }),
      startLeased('b', { timeoutMs: 5 }),
    ],
    'a step': [turn(r1, { records: [record(0)] })],
    'every end that leaves a run in its body': [
      turn(r1, { records: [record(0)], end: COMPLETE }),
      turn({ id: 'r2', token: 7 }, { end: FAIL }),
      turn({ id: 'r3', token: 1 }, { end: RELEASE }),
      turn({ id: 'r4', token: 1 }, { end: SUSPEND }),
      turn(
        { id: 'r5', token: 1 },
        { end: { kind: 'block', error: '""', errorCode: 'x', retryIn: 5 } }
      ),
    ],
    'waits for time and children': [
      turn(r1, {
        opened: [sleep(0, 5), waitForChild(1, 'c')],
        closed: [2],
        children: [childOf('r1', 'c')],
        end: suspendOnEnds(1),
      }),
    ],
    'several change sets of a run': [
      turn(r1, { records: [record(0)] }),
      turn(r1, { records: [record(1)], end: COMPLETE }),
    ],
  }
  for (const [title, writes] of Object.entries(hot))
    test(title, ({ assert }) => assert.isNotNull(plan(...writes)))

  const cold: Record<string, Write[]> = {
    'a signal from outside': [signal('s', 'go')],
    'a turn that sends one': [turn(r1, { signals: [signalSend('s', 'go')] })],
    'a wait for one': [turn(r1, { opened: [waitForSignal(0, 'go')] })],
    'an id that is started twice': [start('a'), start('a')],
    'a child with the id of a start': [start('c'), turn(r1, { children: [childOf('r1', 'c')] })],
    'a turn of a run that the batch starts': [startLeased('r1'), turn(r1)],
    'the same in the other order': [turn(r1), startLeased('r1')],
    'a change set after the end': [turn(r1, { end: COMPLETE }), turn(r1)],
    'two tokens of a run': [turn(r1), turn({ id: 'r1', token: 2 })],
    'a child whose start is to be answered': [
      turn(r1, { children: [{ ...childOf('r1', 'c'), acknowledge: true }] }),
    ],
    'a run that handles another': [start('a', { handles: { runId: 'b', as: 'dead_letter' } })],
    'the beginning of compensations': [
      turn(r1, { end: { kind: 'unwind', error: '""', errorCode: 'x' } }),
    ],
    'a cancel': [
      { type: 'cancel', runId: 'r1', compensate: false, error: '""', errorCode: 'cancelled' },
    ],
  }
  for (const [title, writes] of Object.entries(cold))
    test(`not: ${title}`, ({ assert }) => assert.isNull(plan(start('other'), ...writes)))

  test('the change sets of a run come to one turn, its waits to what they are at the end', ({
    assert,
  }) => {
    const found = plan(
      turn(r1, { records: [record(0)], opened: [sleep(1, 5), sleep(2, 5)], seenInbox: 3 }),
      turn({ id: 'r2', token: 4 }),
      turn(r1, { closed: [1, 5], opened: [sleep(5, 9)], seenInbox: 2 })
    )
    assert.deepEqual(
      found?.turns.map(({ runId, at, seen, closes }) => [runId, at, seen, closes]),
      [
        ['r1', 2, 3, true],
        ['r2', 1, 0, false],
      ]
    )
    assert.deepEqual(
      found?.opened.map(({ seq, turn: of }) => [seq, of]),
      [
        [2, 1],
        [5, 1],
      ]
    )
    assert.deepEqual(
      found?.closed.map(({ seq }) => seq),
      [1]
    )
  })

  test('nothing is opened or closed in a run that ends, and only a child may wake another', ({
    assert,
  }) => {
    const found = plan(
      turn({ id: 'single', token: 1 }, { opened: [sleep(0, 5)], closed: [1], end: COMPLETE }),
      turn(r1, { end: FAIL }),
      turn({ id: 'r2', token: 1 })
    )
    assert.deepEqual([found?.opened, found?.closed], [[], []])
    assert.deepEqual(
      found?.turns.map(({ mayWake }) => mayWake),
      [false, true, false]
    )
  })

  test('starts are in order of id, so that two processes insert in the same order', ({
    assert,
  }) => {
    const found = plan(start('b'), start('c'), start('a'))
    assert.deepEqual(
      found?.starts.map(({ run }) => run.id),
      ['a', 'b', 'c']
    )
  })
})

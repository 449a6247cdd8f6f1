import { test } from '@japa/runner'
import type { Write } from '../../src/core/change_set.ts'
import { foldBatch } from '../../src/core/fold.ts'
import type { LockedState, Plan } from '../../src/core/plan.ts'
import type { NewRun, RunRow } from '../../src/core/run.ts'
import { created } from '../../src/core/transition.ts'
import {
  CLAIM_KEY,
  COMPLETE,
  FAIL,
  newRun,
  parentLink,
  record,
  signal,
  signalSend,
  sleep,
  start,
  startLeased,
  SUSPEND,
  suspendOnEnds,
  turn,
  waitForSignal,
} from '../../src/testing/conformance/writes.ts'

const NOW = 10_000

function running(id: string, overrides: Partial<NewRun> = {}): RunRow {
  return created(newRun(id, overrides), { leaseTo: 'w1', now: 1 })
}

function asleep(id: string, overrides: Partial<RunRow> = {}): RunRow {
  return { ...running(id), status: 'suspended', owner: null, ...overrides }
}

function childOf(parentId: string, index: number, failFast = false): RunRow {
  return running(`${parentId}.${index}`, { parent: parentLink(parentId, { index, failFast }) })
}

/** Folds over these rows; nothing is kept or waited for unless `state` says so. */
function fold(rows: readonly RunRow[], writes: readonly Write[], state: Partial<LockedState> = {}) {
  return foldBatch(writes, {
    now: NOW,
    run: (id) => rows.find((row) => row.id === id),
    keptSignals: () => [],
    waiters: () => [],
    unreadSignals: () => [],
    awaitedChildren: () => [],
    hasSignal: () => false,
    ...state,
  })
}

/** The lists of a plan that are not empty. */
function writtenBy(plan: Plan): string[] {
  const { answers, news, ...lists } = plan
  return Object.entries(lists).flatMap(([name, list]) => (list.length > 0 ? [name] : []))
}

test.group('fold', () => {
  test('three children that end are one write of their parent', ({ assert }) => {
    const parent = asleep('p', { wakeSeq: 3 })
    const children = [0, 1, 2].map((index) => childOf('p', index))
    const plan = fold(
      [parent, ...children],
      children.map((child) => turn(child, { end: COMPLETE }))
    )
    const updates = plan.updates.filter(({ row }) => row.id === 'p')
    assert.deepEqual(updates, [{ row: { ...parent, inboxSeq: 3, dueAt: NOW } }])
    assert.deepEqual(
      plan.inbox.map(({ no }) => no),
      [1, 2, 3]
    )
    assert.deepEqual([...plan.news.due], [CLAIM_KEY])
    assert.deepEqual([...plan.news.ended], ['p.0', 'p.1', 'p.2'])
  })

  test('a wake beside a suspension is one write, whichever comes first', ({ assert }) => {
    const parent = running('p')
    const child = childOf('p', 0)
    const writes = [turn(parent, { end: suspendOnEnds(1) }), turn(child, { end: COMPLETE })]
    for (const batch of [writes, writes.toReversed()]) {
      const { updates } = fold([parent, child], batch)
      assert.lengthOf(updates, 2)
      const row = updates.find((update) => update.row.id === 'p')?.row
      assert.deepEqual([row?.status, row?.dueAt, row?.inboxSeq], ['suspended', NOW, 1])
    }
  })

  test('fail fast {failFast}, {end.kind}: a parent that needs two ends is due at {dueAt}')
    .with([
      { failFast: true, end: FAIL, dueAt: NOW },
      { failFast: true, end: COMPLETE, dueAt: null },
      { failFast: false, end: FAIL, dueAt: null },
    ] as const)
    .run(({ assert }, { failFast, end, dueAt }) => {
      const child = childOf('p', 0, failFast)
      const { updates } = fold([asleep('p', { wakeSeq: 2 }), child], [turn(child, { end })])
      assert.equal(updates.find(({ row }) => row.id === 'p')?.row.dueAt, dueAt)
    })

  test('a change set whose lease is lost writes nothing', ({ assert }) => {
    const child = childOf('p', 0)
    const stale = turn(
      { ...child, token: 0 },
      {
        records: [record(0)],
        opened: [waitForSignal(1, 'go')],
        closed: [2],
        seenInbox: 4,
        children: [{ run: newRun('c'), acknowledge: true }],
        signals: [signalSend('s1', 'go')],
        end: COMPLETE,
      }
    )
    const plan = fold([asleep('p'), child], [stale])
    assert.deepEqual(plan.answers, [{ type: 'lost' }])
    assert.deepEqual(writtenBy(plan), [])
    assert.deepEqual([plan.news.due.size, plan.news.ended.size], [0, 0])
  })

  test('a turn that goes on writes its lists and not its row', ({ assert }) => {
    const plan = fold([running('r1')], [turn(running('r1'), { records: [record(0)] })])
    assert.deepEqual(writtenBy(plan), ['records'])
    assert.deepEqual(plan.answers, [{ type: 'committed', inboxSeq: 0, now: NOW }])
  })

  test('a record is placed in time by the clock of the store', ({ assert }) => {
    const row = running('r1')
    const { records } = fold([row], [turn(row, { records: [record(3, { durationMs: 40 })] })])
    const stored = { generation: 0, token: row.token, startedAt: NOW - 40, endedAt: NOW }
    assert.deepEqual(records, [{ ...record(3, { durationMs: 40 }), ...stored, runId: 'r1' }])
  })

  test('turns of a run that its batch starts are merged into its insert', ({ assert }) => {
    const row = { id: 'r1', token: 1 }
    const plan = fold([], [startLeased('r1'), turn(row), turn(row, { end: COMPLETE })])
    assert.deepEqual(writtenBy(plan), ['inserts', 'cleared'])
    const [insert] = plan.inserts
    assert.deepEqual([insert?.row.status, insert?.output], ['completed', COMPLETE.output])
    const [answer] = plan.answers
    assert.equal(answer?.type === 'started' && answer.run.status, 'running')
  })

  test('payloads of a run survive a later write of its row', ({ assert }) => {
    const row = running('r1')
    const end = { kind: 'block', error: '"no"', errorCode: 'non_determinism', retryIn: 5 } as const
    const waiters = () => [{ runId: 'r1', seq: 0 }]
    const { updates } = fold([row], [turn(row, { end }), signal('s1', 'go')], { waiters })
    assert.lengthOf(updates, 1)
    assert.deepEqual([updates[0]?.error, updates[0]?.row.inboxSeq], ['"no"', 1])
  })

  test('a wait closed and opened again in one batch is open', ({ assert }) => {
    const row = running('r1')
    const plan = fold([row], [turn(row, { closed: [0] }), turn(row, { opened: [sleep(0, 5)] })])
    assert.deepEqual(writtenBy(plan), ['waits'])
    assert.equal(plan.waits[0]?.dueAt, NOW + 5)
  })

  test('a wait opened and closed in one batch is closed, and no longer served', ({ assert }) => {
    const row = running('r1')
    const opening = turn(row, { opened: [waitForSignal(0, 'go')] })
    const plan = fold([row], [opening, signal('s1', 'go'), turn(row, { closed: [0] })])
    assert.deepEqual(writtenBy(plan), ['updates', 'closedWaits', 'keptSignals'])
  })

  test('a run that ended leaves nothing in the other lists', ({ assert }) => {
    const row = { ...running('p'), inboxSeq: 2 }
    const child = childOf('p', 0)
    const plan = fold(
      [row, child],
      [
        turn(row, { opened: [sleep(0, 5)], closed: [1], seenInbox: 1 }),
        turn(child, { end: COMPLETE }),
        turn(row, { seenInbox: 2, end: COMPLETE }),
      ]
    )
    assert.deepEqual(writtenBy(plan), ['updates', 'cleared'])
    assert.sameMembers(plan.cleared, ['p', 'p.0'])
  })

  test('the news names running runs with entries and the nearest later due time', ({ assert }) => {
    const parent = running('p')
    const rows = [parent, childOf('p', 0), running('far'), running('near')]
    const plan = fold(rows, [
      turn(childOf('p', 0), { end: COMPLETE }),
      turn(running('far'), { opened: [sleep(0, 900)], end: { ...SUSPEND, dueIn: 900 } }),
      turn(running('near'), { opened: [sleep(0, 50)], end: { ...SUSPEND, dueIn: 50 } }),
    ])
    assert.deepEqual([...plan.news.inbox], ['p'])
    assert.equal(plan.news.dueIn, 50)
    assert.equal(plan.news.due.size, 0)
    assert.equal(fold([], [start('r1')]).news.dueIn, null)
  })
})

import { test } from '@japa/runner'
import type { TurnEnd } from '../../src/core/change_set.ts'
import { isTerminal, RUN_FORMAT, RUN_STATUSES, type RunRow } from '../../src/core/run.ts'
import {
  claimed,
  created,
  ended,
  holdsLease,
  isClaimable,
  notified,
  orphaned,
} from '../../src/core/transition.ts'
import { newRun } from '../../src/testing/conformance/writes.ts'

const NOW = 10_000
const LATER = NOW + 500
const STARTED = 7

/** A run that worker w1 executes under token 4, with three inbox entries. */
function row(overrides: Partial<RunRow> = {}): RunRow {
  return {
    ...created(newRun('r1'), { leaseTo: 'w1', now: STARTED }),
    token: 4,
    inboxSeq: 3,
    recoveryAttempts: 1,
    ...overrides,
  }
}

function suspend(overrides: Partial<Extract<TurnEnd, { kind: 'suspend' }>> = {}): TurnEnd {
  return { kind: 'suspend', needs: null, dueAt: null, dueIn: null, ...overrides }
}

test.group('transition: created', () => {
  const run = newRun('r1', { priority: 2, origin: 'shop' })

  test('a run is due at once, under no token', ({ assert }) => {
    const pending = created(run, { leaseTo: null, now: NOW })
    const { status, dueAt, owner, token, startedAt, createdAt } = pending
    assert.deepEqual([status, dueAt, owner, token], ['pending', NOW, null, 0])
    assert.deepEqual([startedAt, createdAt, pending.format], [null, NOW, RUN_FORMAT])
    assert.deepEqual([pending.priority, pending.origin], [2, 'shop'])
  })

  test('a leased run belongs to its starter under the first token', ({ assert }) => {
    const leased = created(run, { leaseTo: 'w1', now: NOW })
    const { status, dueAt, owner, token, startedAt } = leased
    assert.deepEqual([status, dueAt, owner, token, startedAt], ['running', null, 'w1', 1, NOW])
    assert.equal(leased.recoveryAttempts, 0)
  })
})

test.group('transition: claiming', () => {
  test('{title}')
    .with([
      { title: 'no due time: not claimable', changes: { dueAt: null }, expected: false },
      { title: 'due later: not claimable', changes: { dueAt: NOW + 1 }, expected: false },
      { title: 'due now: claimable', changes: { dueAt: NOW }, expected: true },
      { title: 'due before: claimable', changes: { dueAt: 1 }, expected: true },
      {
        title: 'due, of a newer format: not claimable',
        changes: { dueAt: 1, format: RUN_FORMAT + 1 },
        expected: false,
      },
      {
        title: 'due, of an older format: claimable',
        changes: { dueAt: 1, format: RUN_FORMAT - 1 },
        expected: true,
      },
    ])
    .run(({ assert }, { changes, expected }) => {
      assert.equal(isClaimable(row(changes), NOW), expected)
    })

  test('a pickup of a run that reads {status} is counted {counted} times (DL-4, DL-10)')
    .with([
      { status: 'pending', counted: 0 },
      { status: 'suspended', counted: 0 },
      { status: 'blocked', counted: 0 },
      { status: 'running', counted: 1 },
    ] as const)
    .run(({ assert }, { status, counted }) => {
      const before = row({ status, owner: 'w1', dueAt: NOW, wakeSeq: 9, recoveryAttempts: 2 })
      assert.deepEqual(claimed(before, { owner: 'w2', now: LATER }), {
        ...before,
        ...{ status: 'running', owner: 'w2', token: 5, dueAt: null, wakeSeq: null },
        ...{ recoveryAttempts: 2 + counted, startedAt: STARTED, updatedAt: LATER },
      })
    })

  test('the first pickup is when the run started', ({ assert }) => {
    const before = created(newRun('r1'), { leaseTo: null, now: STARTED })
    assert.equal(claimed(before, { owner: 'w1', now: LATER }).startedAt, LATER)
  })

  test('a run handed back or suspended is not counted at its next pickup (DL-10)', ({ assert }) => {
    for (const end of [{ kind: 'release' } as const, suspend({ dueIn: 0 })]) {
      const waiting = ended(row(), end, { seenInbox: 3, now: NOW })
      assert.isTrue(isClaimable(waiting, NOW))
      assert.equal(claimed(waiting, { owner: 'w2', now: NOW }).recoveryAttempts, 1)
    }
  })

  test('a run whose owner is lost is due, and counted at its next pickup (DL-4)', ({ assert }) => {
    const lost = orphaned(row(), { now: NOW, isCounted: true, suspectFrom: null })
    assert.deepEqual(lost, { ...row(), dueAt: NOW, updatedAt: NOW })
    assert.isTrue(isClaimable(lost, NOW))
    assert.equal(claimed(lost, { owner: 'w2', now: NOW }).recoveryAttempts, 2)
  })
})

test.group('transition: lease', () => {
  test('a run that reads {$self} is written under its own token only while it runs')
    .with([...RUN_STATUSES])
    .run(({ assert }, status) => {
      assert.equal(holdsLease(row({ status }), 4), status === 'running')
      assert.isFalse(holdsLease(row({ status }), 3))
      assert.isFalse(holdsLease(row({ status }), 5))
    })

  test('an unknown run is held by nobody', ({ assert }) => {
    assert.isFalse(holdsLease(undefined, 0))
  })

  test('the owner of a run that was made due holds it until somebody claims it', ({ assert }) => {
    const lost = orphaned(row(), { now: NOW, isCounted: true, suspectFrom: null })
    assert.isTrue(holdsLease(lost, 4))
    assert.isFalse(holdsLease(claimed(lost, { owner: 'w2', now: NOW }), 4))
  })
})

test.group('transition: ends of a turn', () => {
  const block = { kind: 'block', error: '', errorCode: 'non_determinism', retryIn: 500 } as const
  const fail = { kind: 'fail', error: '', errorCode: 'max_price' } as const

  test('{end.kind}: {expected.status}')
    .with([
      {
        end: { kind: 'complete', output: '1' } as TurnEnd,
        expected: { status: 'completed', dueAt: null, endedAt: NOW, errorCode: null },
      },
      {
        end: fail as TurnEnd,
        expected: { status: 'failed', dueAt: null, endedAt: NOW, errorCode: 'max_price' },
      },
      {
        end: block as TurnEnd,
        expected: { status: 'blocked', dueAt: LATER, errorCode: 'non_determinism' },
      },
      {
        end: { kind: 'release' } as TurnEnd,
        expected: { status: 'suspended', dueAt: NOW, wakeSeq: null, errorCode: null },
      },
      {
        end: suspend({ needs: 2 }),
        expected: { status: 'suspended', dueAt: null, wakeSeq: 5, errorCode: null },
      },
    ] as const)
    .run(({ assert }, { end, expected }) => {
      const before = row({ errorCode: 'non_determinism' })
      const after = ended(before, end, { seenInbox: 3, now: NOW })
      assert.deepEqual(after, { ...before, owner: null, updatedAt: NOW, ...expected })
      assert.equal(isTerminal(after.status), after.endedAt !== null)
      assert.isFalse(holdsLease(after, before.token))
    })

  test('going on changes nothing', ({ assert }) => {
    const before = row()
    assert.strictEqual(ended(before, { kind: 'continue' }, { seenInbox: 3, now: NOW }), before)
  })

  test('a suspension is due at {expected} for {title}')
    .with([
      { title: 'no time', dueAt: null, dueIn: null, expected: null },
      { title: 'an instant', dueAt: LATER, dueIn: null, expected: LATER },
      { title: 'a past instant', dueAt: 5, dueIn: null, expected: 5 },
      { title: 'a duration', dueAt: null, dueIn: 500, expected: LATER },
      { title: 'an instant before a duration', dueAt: LATER - 1, dueIn: 500, expected: LATER - 1 },
      { title: 'a duration before an instant', dueAt: LATER + 1, dueIn: 500, expected: LATER },
      { title: 'no duration at all', dueAt: null, dueIn: 0, expected: NOW },
    ])
    .run(({ assert }, { dueAt, dueIn, expected }) => {
      const after = ended(row(), suspend({ dueAt, dueIn }), { seenInbox: 3, now: NOW })
      assert.equal(after.dueAt, expected)
    })

  test('a suspension that has not seen the newest entry is due at once', ({ assert }) => {
    const end = suspend({ dueIn: 500, needs: 5 })
    const after = ended(row(), end, { seenInbox: 2, now: NOW })
    assert.deepEqual([after.dueAt, after.wakeSeq], [NOW, 7])
  })
})

test.group('transition: inbox entries', () => {
  const asleep = row({ status: 'suspended', owner: null, dueAt: null })

  test('{title}: due at {dueAt}')
    .with([
      { title: 'any entry wakes', wakeSeq: null, count: 1, urgent: false, dueAt: NOW },
      { title: 'too few ends', wakeSeq: 6, count: 2, urgent: false, dueAt: null },
      { title: 'the last end needed', wakeSeq: 6, count: 3, urgent: false, dueAt: NOW },
      { title: 'more than needed', wakeSeq: 6, count: 4, urgent: false, dueAt: NOW },
      { title: 'an urgent one', wakeSeq: 6, count: 1, urgent: true, dueAt: NOW },
    ])
    .run(({ assert }, { wakeSeq, count, urgent, dueAt }) => {
      const after = notified({ ...asleep, wakeSeq }, { count, urgent, now: NOW })
      assert.deepEqual(after, { ...asleep, wakeSeq, inboxSeq: 3 + count, dueAt })
    })

  test('a wake brings a later due time forward and never puts an earlier one off', ({ assert }) => {
    const wake = { count: 1, urgent: true, now: NOW }
    assert.equal(notified({ ...asleep, dueAt: LATER }, wake).dueAt, NOW)
    assert.equal(notified({ ...asleep, dueAt: 5 }, wake).dueAt, 5)
  })

  test('entries of a run that reads {$self} are numbered and change nothing else')
    .with(RUN_STATUSES.filter((status) => status !== 'suspended'))
    .run(({ assert }, status) => {
      const before = row({ status, dueAt: LATER })
      const after = notified(before, { count: 2, urgent: true, now: NOW })
      assert.deepEqual(after, { ...before, inboxSeq: 5 })
    })
})

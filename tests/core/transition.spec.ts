import { test } from '@japa/runner'
import type { TurnEnd } from '../../src/core/change_set.ts'
import { suspectKey } from '../../src/core/name.ts'
import {
  isTerminal,
  RUN_FORMAT,
  RUN_STATUSES,
  type RunPhase,
  type RunRow,
} from '../../src/core/run.ts'
import {
  cancelled,
  claimed,
  created,
  ended,
  holdsLease,
  isClaimable,
  isRequeueable,
  notified,
  orphaned,
  requeued,
  unwinding,
  woken,
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
    const lost = orphaned(row(), {
      now: NOW,
      isCounted: true,
      suspectFrom: null,
      besideSuspect: false,
      parkUntil: null,
    })
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
    const lost = orphaned(row(), {
      now: NOW,
      isCounted: true,
      suspectFrom: null,
      besideSuspect: false,
      parkUntil: null,
    })
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

const PHASES: readonly RunPhase[] = ['body', 'unwinding', 'following']
const FAILURE = { error: '', errorCode: 'max_price' }
/** The code of the failure that a run unwinds or follows for. */
const KEPT = 'sold_out'

/** What each end comes to: status, and error code in the body's phase and in the later ones. */
const ENDS: readonly {
  end: TurnEnd
  status: RunRow['status']
  codes: [inBody: string | null, later: string | null]
  phase?: RunPhase
}[] = [
  { end: { kind: 'complete', output: '1' }, status: 'completed', codes: [null, null] },
  { end: { kind: 'fail', ...FAILURE }, status: 'failed', codes: ['max_price', 'max_price'] },
  { end: { kind: 'die', ...FAILURE }, status: 'dead', codes: ['max_price', 'max_price'] },
  { end: { kind: 'cancel', ...FAILURE }, status: 'cancelled', codes: ['max_price', 'max_price'] },
  { end: { kind: 'block', ...FAILURE, retryIn: 1 }, status: 'blocked', codes: ['max_price', KEPT] },
  { end: { kind: 'release' }, status: 'suspended', codes: [null, KEPT] },
  { end: suspend(), status: 'suspended', codes: [null, KEPT] },
  {
    ...{ end: { kind: 'unwind', ...FAILURE }, status: 'running', phase: 'unwinding' },
    codes: ['max_price', 'max_price'],
  },
  {
    ...{ end: { kind: 'follow', ...FAILURE, tag: 'onError:*' }, status: 'suspended' },
    ...{ phase: 'following', codes: ['max_price', 'max_price'] },
  },
]

test.group('transition: ends in every phase', () => {
  test('{end.kind}: {status}, whatever the phase')
    .with([...ENDS])
    .run(({ assert }, { end, status, codes, phase }) => {
      for (const before of PHASES.map((of) => row({ phase: of, errorCode: KEPT }))) {
        const after = ended(before, end, { seenInbox: 3, now: NOW })
        const [inBody, later] = codes
        const place = `${end.kind} in phase ${before.phase}`
        assert.equal(after.status, status, place)
        assert.equal(after.phase, phase ?? before.phase, place)
        assert.equal(after.errorCode, before.phase === 'body' ? inBody : later, place)
        assert.equal(after.token, before.token, 'a turn writes under its own token')
        assert.equal(after.endedAt, isTerminal(status) ? NOW : null, place)
        assert.equal(after.owner, status === 'running' ? 'w1' : null, place)
        assert.equal(after.handoffs, end.kind === 'follow' ? 1 : 0, place)
        if (isTerminal(status)) assert.isNull(after.dueAt, place)
      }
    })

  test('a run that leaves its worker is no suspect any more; one that goes on is', ({ assert }) => {
    const { claimKey } = row()
    const suspected = row({ claimKey: suspectKey(claimKey) })
    for (const { end, status } of ENDS) {
      const after = ended(suspected, end, { seenInbox: 3, now: NOW })
      assert.equal(after.claimKey, status === 'running' ? suspected.claimKey : claimKey)
    }
  })

  test('a run that follows is due at once if something has come that it has not seen', ({
    assert,
  }) => {
    const follow = { kind: 'follow', ...FAILURE, tag: 'onError:*' } as const
    assert.isNull(ended(row({ wakeSeq: 9 }), follow, { seenInbox: 3, now: NOW }).dueAt)
    assert.equal(ended(row(), follow, { seenInbox: 2, now: NOW }).dueAt, NOW)
    assert.isNull(ended(row({ wakeSeq: 9 }), follow, { seenInbox: 3, now: NOW }).wakeSeq)
  })
})

test.group('transition: from outside', () => {
  const live = RUN_STATUSES.filter((status) => !isTerminal(status))

  test('a run that reads {$self} is cancelled: its token is raised (P1)')
    .with(live)
    .run(({ assert }, status) => {
      const suspect = suspectKey(row().claimKey)
      const before = row({ status, dueAt: LATER, wakeSeq: 9, claimKey: suspect })
      const after = cancelled(before, { errorCode: 'cancelled', now: NOW })
      assert.deepEqual(after, {
        ...before,
        ...{ status: 'cancelled', errorCode: 'cancelled', token: 5, owner: null, dueAt: null },
        ...{ wakeSeq: null, endedAt: NOW, updatedAt: NOW, claimKey: row().claimKey },
      })
    })

  test('a run that reads {$self} is to undo its steps: due at once, under a new token')
    .with(live)
    .run(({ assert }, status) => {
      const before = row({ status, dueAt: LATER, wakeSeq: 9 })
      const after = unwinding(before, { errorCode: 'cancelled', now: NOW })
      assert.deepEqual(after, {
        ...before,
        ...{ status: 'suspended', phase: 'unwinding', errorCode: 'cancelled', token: 5 },
        ...{ owner: null, dueAt: NOW, wakeSeq: null, updatedAt: NOW },
      })
      assert.isFalse(holdsLease(after, before.token))
    })

  test('only failed and dead runs are made live again (P6)', ({ assert }) => {
    const found = RUN_STATUSES.filter((status) => isRequeueable(row({ status })))
    assert.deepEqual(found, ['failed', 'dead'])
  })

  for (const phase of PHASES)
    test(`a requeue in phase ${phase} gives the whole budget of recoveries, and the body (DL-9)`, ({
      assert,
    }) => {
      const over = { status: 'failed', phase, errorCode: KEPT, endedAt: 9, owner: null } as const
      const before = row({ ...over, handoffs: 2, recoveryAttempts: 4 })
      const after = requeued(before, { now: NOW })
      assert.deepEqual(after, {
        ...before,
        ...{ status: 'pending', phase: 'body', errorCode: null, endedAt: null, dueAt: NOW },
        ...{ token: 5, recoveryAttempts: 0, updatedAt: NOW },
      })
      assert.equal(after.handoffs, 2, 'the next handoff has a number of its own')
    })

  test('a requeue gives the execution time anew: {title}')
    .with([
      { title: 'that of the workflow', deadlineAt: 5, timeoutMs: 500, expected: LATER },
      { title: 'none, if it has none now', deadlineAt: 5, timeoutMs: null, expected: null },
      { title: 'as long as before, if it is unknown', deadlineAt: STARTED + 500, expected: LATER },
      { title: 'none as before, if it is unknown', deadlineAt: null, expected: null },
    ])
    .run(({ assert }, { deadlineAt, timeoutMs, expected }) => {
      const before = row({ status: 'failed', deadlineAt })
      assert.equal(requeued(before, { now: NOW, timeoutMs }).deadlineAt, expected)
    })

  test('a wake makes a waiting run due and leaves every other one as it is', ({ assert }) => {
    for (const status of RUN_STATUSES) {
      const after = woken(row({ status, owner: null, dueAt: LATER }), NOW)
      const waits = ['pending', 'suspended', 'blocked'].includes(status)
      assert.equal(after?.dueAt, waits ? NOW : undefined, status)
    }
    assert.isNull(woken(row({ status: 'suspended', dueAt: NOW }), NOW))
    assert.equal(woken(row({ status: 'suspended', dueAt: null }), NOW)?.dueAt, NOW)
  })

  test('a run that is lost beside a suspect becomes one, uncounted, and the suspect itself is counted (DL-11)', ({
    assert,
  }) => {
    const terms = {
      now: NOW,
      isCounted: true,
      suspectFrom: 2,
      besideSuspect: true,
      parkUntil: null,
    }
    const beside = orphaned(row({ recoveryAttempts: 0 }), terms)
    assert.equal(beside.status, 'suspended')
    assert.isNull(beside.owner)
    assert.equal(beside.token, row().token + 1, 'no write of its owner is taken for this')
    assert.equal(beside.claimKey, suspectKey(row().claimKey))
    assert.equal(claimed(beside, { owner: 'w2', now: NOW }).recoveryAttempts, 0)
    const suspect = orphaned(row({ claimKey: suspectKey(row().claimKey) }), terms)
    assert.equal(suspect.status, 'running')
    assert.equal(claimed(suspect, { owner: 'w2', now: NOW }).recoveryAttempts, 2)
  })

  test('a lost run becomes a suspect from the pickup on that it is told, if its owner counts', ({
    assert,
  }) => {
    const { claimKey } = row()
    const lose = (recoveryAttempts: number, isCounted: boolean, suspectFrom: number | null) =>
      orphaned(row({ recoveryAttempts }), {
        now: NOW,
        isCounted,
        suspectFrom,
        besideSuspect: false,
        parkUntil: null,
      })
    assert.equal(lose(0, true, 2).claimKey, claimKey)
    assert.equal(lose(1, true, 2).claimKey, suspectKey(claimKey))
    assert.equal(lose(9, true, null).claimKey, claimKey)
    const uncounted = lose(1, false, 2)
    assert.deepEqual(
      [uncounted.claimKey, uncounted.status, uncounted.owner, uncounted.dueAt],
      [claimKey, 'suspended', null, NOW]
    )
  })
})

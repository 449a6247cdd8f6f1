import { test } from '@japa/runner'
import type { Write } from '../../src/core/change_set.ts'
import type { RunRow } from '../../src/core/run.ts'
import { cancelled, claimed, created } from '../../src/core/transition.ts'
import { KnownLeases } from '../../src/stores/lucid/postgres/known_leases.ts'
import {
  cancel,
  COMPLETE,
  newRun,
  start,
  startLeased,
  turn,
} from '../../src/testing/conformance/writes.ts'

/** A run that `w1` has claimed so many times. */
function heldRun(id: string, { token }: { token: number }): RunRow {
  const row = created(newRun(id), { leaseTo: 'w1', now: 0 })
  return { ...claimed(row, { owner: 'w1', now: 0 }), token }
}

const TERMS = { errorCode: 'cancelled', now: 0 }
const LOST = { type: 'lost' } as const
const REFUSED = { type: 'refused', error: new Error('no') } as const
const COMMITTED = { type: 'committed', inboxSeq: 0, now: 0 } as const

test.group('Leases that a process knows of', () => {
  function holding(...rows: RunRow[]): KnownLeases {
    const leases = new KnownLeases()
    leases.claimed(rows)
    return leases
  }

  const isKnown = (leases: KnownLeases, row: RunRow) => leases.adopt([row]).length === 0

  test('a run that was cancelled is forgotten, with the children that it awaited', ({ assert }) => {
    const rows = [heldRun('r', { token: 1 }), heldRun('child', { token: 1 })]
    const leases = holding(...rows)
    const runs = rows.map((row) => cancelled(row, TERMS))
    leases.answered(cancel('r'), { type: 'cancelled', outcome: 'cancelled', runs })
    assert.isTrue(leases.mayHaveParent('r'))
    assert.isTrue(leases.mayHaveParent('child'))
  })

  test('a run is handed out that was taken away and claimed again, unheard', ({ assert }) => {
    const leases = holding(heldRun('r', { token: 1 }))
    const again = heldRun('r', { token: 3 })
    leases.claimFailed()
    assert.deepEqual(leases.adopt([again]), [again])
    assert.isTrue(isKnown(leases, again))
  })

  test('a run that is held is not handed out', ({ assert }) => {
    const row = heldRun('r', { token: 2 })
    assert.isTrue(isKnown(holding(row), row))
  })

  test('what the instance held is forgotten when it has lost its lease', ({ assert }) => {
    const other = { ...heldRun('o', { token: 1 }), owner: 'w2' }
    const leases = holding(heldRun('r', { token: 1 }), other)
    leases.withdrawn('w1')
    assert.isTrue(leases.mayHaveParent('r'))
    assert.isTrue(isKnown(leases, other))
  })

  const turns = {
    'a turn that was too late': LOST,
    'the end of a turn': COMMITTED,
  }
  for (const [title, answer] of Object.entries(turns)) {
    test(`${title} under an earlier lease says nothing of the one held now`, ({ assert }) => {
      const row = heldRun('r', { token: 2 })
      const leases = holding(row)
      leases.answered(turn({ id: 'r', token: 1 }, { end: COMPLETE }), answer)
      assert.isTrue(isKnown(leases, row))
    })

    test(`${title} under the lease forgets it`, ({ assert }) => {
      const leases = holding(heldRun('r', { token: 2 }))
      leases.answered(turn({ id: 'r', token: 2 }, { end: COMPLETE }), answer)
      assert.isTrue(leases.mayHaveParent('r'))
    })
  }

  test('a run whose end is refused is held still', ({ assert }) => {
    const row = heldRun('r', { token: 2 })
    const leases = holding(row)
    leases.answered(turn({ id: 'r', token: 2 }, { end: COMPLETE }), REFUSED)
    assert.isTrue(isKnown(leases, row))
  })

  test('a start that is refused is forgotten, and one of an id that is held here is not', ({
    assert,
  }) => {
    const row = heldRun('held', { token: 1 })
    const leases = holding(row)
    for (const id of ['r', 'held']) {
      leases.sending([startLeased(id)])
      leases.answered(startLeased(id), REFUSED)
    }
    assert.isTrue(leases.mayHaveParent('r'))
    assert.isTrue(isKnown(leases, row))
  })

  test('what the store no longer holds for the instance is forgotten, what came meanwhile is not', ({
    assert,
  }) => {
    const kept = heldRun('kept', { token: 1 })
    const leases = holding(heldRun('taken', { token: 1 }), heldRun('again', { token: 1 }), kept)
    leases.sending([startLeased('starting')])
    const compare = leases.comparing('w1')
    const again = heldRun('again', { token: 3 })
    const late = heldRun('late', { token: 1 })
    leases.claimed([again, late])
    const { claimKey, status, phase, token, errorCode } = kept
    compare([{ runId: 'kept', claimKey, status, phase, token, errorCode }])
    assert.isTrue(leases.mayHaveParent('taken'))
    for (const row of [kept, again, late]) assert.isTrue(isKnown(leases, row), row.id)
    assert.isFalse(leases.mayHaveParent('starting'))
  })

  test('a start that is under way is known', ({ assert }) => {
    const leases = new KnownLeases()
    leases.sending([startLeased('r')])
    assert.isTrue(isKnown(leases, created(newRun('r'), { leaseTo: 'w1', now: 0 })))
  })

  test('a start of an id that is held here already changes nothing, however it ends', ({
    assert,
  }) => {
    const row = heldRun('r', { token: 1 })
    const leases = holding(row)
    const again: Write = startLeased('r')
    leases.sending([again])
    leases.answered(again, { type: 'started', created: false, run: row })
    assert.isTrue(isKnown(leases, row))
    leases.sending([again])
    leases.failed([again], { isUnknown: false })
    assert.isTrue(isKnown(leases, row))
  })

  test('a start that finds a run whose own start was never answered leaves it to be handed out', ({
    assert,
  }) => {
    const leases = new KnownLeases()
    const write: Write = startLeased('r')
    leases.sending([write])
    leases.failed([write], { isUnknown: true })
    assert.isTrue(leases.isInDoubt)
    const row = created(newRun('r'), { leaseTo: 'w1', now: 0 })
    leases.sending([write])
    leases.answered(write, { type: 'started', created: false, run: row })
    assert.deepEqual(leases.adopt([row]), [row])
  })

  test('a start for whoever claims it puts nothing in doubt', ({ assert }) => {
    const leases = new KnownLeases()
    leases.sending([start('r')])
    leases.failed([start('r')], { isUnknown: true })
    assert.isFalse(leases.isInDoubt)
  })
})

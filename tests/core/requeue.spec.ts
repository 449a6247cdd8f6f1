import { test } from '@japa/runner'
import {
  compensationSeq,
  handoffSeq,
  type HistoryRecord,
  type NewRecord,
} from '../../src/core/history.ts'
import { planRequeue } from '../../src/core/requeue.ts'
import { encodeError, type SerializedError } from '../../src/core/serialized_error.ts'
import { record } from '../../src/testing/conformance/writes.ts'

function errorOf(message: string, more: Partial<SerializedError> = {}): SerializedError {
  return { name: 'Error', message, ...more }
}

/** An operation called after `after` deliveries and delivered as number `ordinal`. */
function done(seq: number, after: number, ordinal: number | null, more: Partial<NewRecord> = {}) {
  const stored = { generation: 0, token: 1, startedAt: 0, endedAt: 0 }
  return { ...record(seq, { after, ordinal, ...more }), ...stored } satisfies HistoryRecord
}

function failed(seq: number, after: number, ordinal: number, message: string) {
  return done(seq, after, ordinal, { status: 'failed', error: encodeError(errorOf(message)) })
}

function undo(seq: number, status: 'completed' | 'failed' = 'completed') {
  return done(compensationSeq(seq), 0, null, { kind: 'compensation', status })
}

test.group('Requeue plan', () => {
  test('{title}: {retire} are retired')
    .with([
      {
        title: 'a sequence whose last step failed',
        records: [done(0, 0, 0), done(1, 1, 1), failed(2, 2, 2, 'no')],
        error: errorOf('no'),
        retire: [2],
      },
      {
        title: 'a failure that the body caught before it went on and ended with it',
        records: [done(0, 0, 0), failed(1, 1, 1, 'no'), done(2, 2, 2)],
        error: errorOf('no'),
        retire: [1, 2],
      },
      {
        title: 'of two failures the one that the error names',
        records: [failed(0, 0, 0, 'one'), failed(1, 1, 1, 'two'), done(2, 2, 2)],
        error: errorOf('one'),
        retire: [0, 1, 2],
      },
      {
        title: 'a failure that the error has as a cause',
        records: [failed(0, 0, 0, 'one'), failed(1, 1, 1, 'two'), done(2, 2, 2)],
        error: errorOf('wrapped', { cause: errorOf('between', { cause: errorOf('one') }) }),
        retire: [0, 1, 2],
      },
      {
        title: 'the same message under another code is another failure',
        records: [failed(0, 0, 0, 'no'), failed(1, 1, 1, 'other')],
        error: errorOf('no', { code: 'changed' }),
        retire: [1],
      },
      {
        title: 'what failed beside the one that the error names, and before it',
        records: [failed(0, 0, 1, 'one'), failed(1, 0, 0, 'two'), done(2, 0, 2), done(3, 3, 3)],
        error: errorOf('one'),
        retire: [0, 1, 3],
      },
      {
        title: 'an error of the body itself: the last that failed',
        records: [failed(0, 0, 0, 'one'), done(1, 1, 1), failed(2, 2, 2, 'two'), done(3, 3, 3)],
        error: errorOf('of the body'),
        retire: [2, 3],
      },
      {
        title: 'an error of the body itself, where nothing failed',
        records: [done(0, 0, 0), done(1, 1, 1)],
        error: errorOf('of the body'),
        retire: [],
      },
      {
        title: 'a dead run with what was at work in it',
        records: [done(0, 0, 0), done(1, 1, 1)],
        error: errorOf('lost', { code: 'max_recovery_attempts' }),
        retire: [],
      },
      {
        title:
          'parallel steps: what was called before the failure stays, though delivered after it',
        records: [failed(0, 0, 0, 'no'), done(1, 0, 1), done(2, 1, 2)],
        error: errorOf('no'),
        retire: [0, 2],
      },
      {
        title: 'parallel steps, of which some were delivered before',
        records: [done(0, 0, 1), done(1, 0, 0), failed(2, 0, 2, 'no'), done(3, 0, 3)],
        error: errorOf('no'),
        retire: [2],
      },
      {
        title: 'a step in flight when the body ended',
        records: [
          failed(0, 0, 0, 'no'),
          done(1, 0, null, { status: 'abandoned', output: null }),
          done(2, 0, null, { status: 'completed' }),
        ],
        error: errorOf('no'),
        retire: [0, 1, 2],
      },
      {
        title: 'a race: the winner stays, and what came after it',
        records: [
          done(0, 0, 1, { kind: 'sleep' }),
          done(1, 0, 0),
          done(2, 1, 2),
          failed(3, 2, 3, 'no'),
        ],
        error: errorOf('no'),
        retire: [3],
      },
      {
        title: 'readings of the clock after the failure go, those before it stay',
        records: [
          done(0, 0, null, { kind: 'now' }),
          failed(1, 0, 0, 'no'),
          done(2, 1, null, { kind: 'now' }),
        ],
        error: errorOf('no'),
        retire: [1, 2],
      },
      {
        title: 'undone operations, and everything after the first of them',
        records: [
          ...[undo(3), undo(1, 'failed')],
          ...[done(0, 0, 0), done(1, 1, 1), done(2, 2, 2), done(3, 3, 3), failed(4, 4, 4, 'no')],
        ],
        error: errorOf('no'),
        retire: [-4, -2, 1, 2, 3, 4],
      },
      {
        title: 'an undone operation that was delivered to nobody moves nothing else',
        records: [undo(1), failed(0, 0, 0, 'no'), done(1, 0, null), done(2, 0, 1)],
        error: errorOf('no'),
        retire: [-2, 0, 1],
      },
      {
        title: 'a handoff, and the operation that failed before it',
        records: [
          done(handoffSeq(0), 0, null, { kind: 'handoff', name: 'onError:r.onError.0' }),
          done(0, 0, 0),
          failed(1, 1, 1, 'no'),
        ],
        error: errorOf('of the handler'),
        retire: [handoffSeq(0), 1],
      },
      {
        title: 'gaps of an earlier requeue: the cut is a place, not a number',
        records: [done(1, 0, 1), failed(0, 0, 2, 'no'), done(2, 2, 3)],
        error: errorOf('no'),
        retire: [0, 2],
      },
    ])
    .run(({ assert }, { records, error, retire }) => {
      const plan = planRequeue(records, error)
      assert.sameMembers(plan.retire, retire)
      const kept = records.map(({ seq }) => seq).filter((seq) => !retire.includes(seq))
      assert.sameMembers(plan.kept, kept)
    })

  test('what stays is what a body has called first: positions without a gap but for the retired, ordinals unique', ({
    assert,
  }) => {
    const records = [done(0, 0, 0), failed(1, 1, 1, 'no'), done(2, 1, 2), done(3, 2, 3)]
    const { retire, kept } = planRequeue(records, errorOf('no'))
    assert.deepEqual(
      [retire, kept],
      [
        [1, 3],
        [0, 2],
      ]
    )
    const left = records.filter(({ seq }) => kept.includes(seq))
    assert.lengthOf(new Set(left.map(({ ordinal }) => ordinal)), left.length)
    const next = Math.max(...left.map(({ ordinal }) => ordinal ?? 0)) + 1
    const again = [...left, failed(1, 1, next, 'no'), done(3, 3, next + 1)]
    assert.sameMembers(planRequeue(again, errorOf('no')).retire, [1, 3])
  })

  test('nothing is retired twice, whatever the error', ({ assert }) => {
    assert.deepEqual(planRequeue([], null), { retire: [], kept: [], repeated: [] })
    const records = [done(0, 0, 0), undo(0), failed(1, 1, 1, 'no')]
    const { retire } = planRequeue(records, null)
    assert.lengthOf(retire, new Set(retire).size)
  })
})

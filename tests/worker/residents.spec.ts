import { test } from '@japa/runner'
import { created } from '../../src/core/transition.ts'
import type { Resident } from '../../src/engine/execution.ts'
import type { AbortError } from '../../src/errors.ts'
import { newRun } from '../../src/testing/conformance/writes.ts'
import { Residents } from '../../src/worker/residents.ts'

/** A suspended run with so many bytes of history, and the codes for which it was discarded. */
function suspended(id: string, { token = 1, bytes = 2 }: { token?: number; bytes?: number } = {}) {
  const reasons: string[] = []
  const kept: Resident = {
    row: { ...created(newRun(id), { leaseTo: 'w1', now: 0 }), token },
    historyCharacters: bytes / 2,
    inboxLoaded: 0,
    resident: null,
    discard: ({ code }: AbortError) => void reasons.push(code),
    continues: () => true,
    run: async () => 'suspended',
    drain: () => {},
    abort: () => {},
    release: () => {},
    quiet: async () => {},
  }
  return { ...kept, reasons }
}

test.group('Runs kept in memory', () => {
  const limited = (limits: { runs?: number; bytes?: number }) =>
    new Residents({ runs: 10, bytes: 1_000, ...limits })

  test('the one that was kept longest ago goes when there are too many', ({ assert }) => {
    const residents = limited({ runs: 2 })
    const [a, b, c] = [suspended('a'), suspended('b'), suspended('c')]
    for (const run of [a, b, c]) residents.keep(run)
    assert.deepEqual(a.reasons, ['turn_over'])
    assert.isUndefined(residents.take('a'))
    assert.strictEqual(residents.take('b'), b)
    assert.strictEqual(residents.take('c'), c)
  })

  test('the one that was kept longest ago goes when their histories are too large', ({
    assert,
  }) => {
    const residents = limited({ bytes: 100 })
    const [a, b] = [suspended('a', { bytes: 60 }), suspended('b', { bytes: 60 })]
    for (const run of [a, b]) residents.keep(run)
    assert.deepEqual(a.reasons, ['turn_over'])
    assert.strictEqual(residents.take('b'), b)
  })

  test('a run that is kept again replaces itself: it is discarded, takes no room, and is the youngest', ({
    assert,
  }) => {
    const residents = limited({ runs: 2, bytes: 100 })
    const [before, after] = [
      suspended('a', { token: 1, bytes: 60 }),
      suspended('a', { token: 2, bytes: 30 }),
    ]
    const [b, c] = [suspended('b', { bytes: 30 }), suspended('c', { bytes: 30 })]
    for (const run of [before, b, after]) residents.keep(run)
    assert.deepEqual(before.reasons, ['lease_lost'])
    assert.deepEqual([b.reasons, after.reasons], [[], []])
    residents.keep(c)
    assert.deepEqual(b.reasons, ['turn_over'])
    assert.strictEqual(residents.take('a'), after)
  })

  test('a run that comes late is not kept in place of itself under a later lease', ({ assert }) => {
    const residents = limited({})
    const [late, kept] = [suspended('a', { token: 1 }), suspended('a', { token: 2 })]
    for (const run of [kept, late]) residents.keep(run)
    assert.deepEqual(late.reasons, ['lease_lost'])
    assert.strictEqual(residents.take('a'), kept)
    assert.deepEqual(kept.reasons, [])
  })
})

import { test } from '@japa/runner'
import { FatalError, StepError } from '../../src/errors.ts'
import { backoffMs, DEFAULT_BACKOFF } from '../../src/core/backoff.ts'
import { decideRetry, DEFAULT_RETRY_POLICY } from '../../src/core/retry_policy.ts'
import { serializeError } from '../../src/core/serialized_error.ts'

const ALMOST_ONE = 1 - Number.EPSILON

test.group('back-off', () => {
  const WAITS: [attempt: number, ms: number][] = [
    [1, 250],
    [2, 500],
    [3, 1000],
    [4, 2000],
    [7, 16_000],
    [8, 30_000],
    [9, 30_000],
    [5000, 30_000],
  ]
  for (const [attempt, ms] of WAITS) {
    test(`after attempt ${attempt} it is between ${ms / 2} and ${ms} ms`, ({ assert }) => {
      assert.equal(backoffMs({ attempt, jitter: 0 }), ms / 2)
      assert.equal(backoffMs({ attempt, jitter: 0.5 }), Math.round(ms * 0.75))
      assert.equal(backoffMs({ attempt, jitter: ALMOST_ONE }), ms)
    })
  }

  test('takes its lengths from the policy', ({ assert }) => {
    const backoff = { firstMs: 10, factor: 3, maxMs: 100 }
    assert.deepEqual(
      [1, 2, 3, 4].map((attempt) => backoffMs({ attempt, jitter: ALMOST_ONE, backoff })),
      [10, 30, 90, 100]
    )
    assert.equal(
      backoffMs({ attempt: 3, jitter: 0, backoff: { firstMs: 0, factor: 2, maxMs: 100 } }),
      0
    )
  })

  test('by default every wait is at most a second', ({ assert }) => {
    for (let attempt = 1; attempt <= DEFAULT_RETRY_POLICY.retries; attempt++) {
      assert.isAtMost(backoffMs({ attempt, jitter: ALMOST_ONE }), 1000)
    }
  })
})

test.group('retry decision', () => {
  const policy = { retries: 2, backoff: DEFAULT_BACKOFF }
  const CASES: [
    title: string,
    error: { retryable?: boolean },
    attempt: number,
    retries: number,
    delayMs: number | null,
  ][] = [
    ['retries a first failure', {}, 1, 2, 125],
    ['retries a failure that says it may be', { retryable: true }, 1, 2, 125],
    ['retries up to the number of further attempts', {}, 2, 2, 250],
    ['gives up when the attempts are spent', {}, 3, 2, null],
    ['gives up when more attempts were made than the policy now allows', {}, 5, 2, null],
    ['gives up at once without retries', {}, 1, 0, null],
    ['gives up at once on what no attempt changes', { retryable: false }, 1, 2, null],
    ['gives up at once on a FatalError', new FatalError('x'), 1, 2, null],
    ['gives up at once on a recorded FatalError', serializeError(new FatalError('x')), 1, 2, null],
    ['gives up although a failure says it may be retried', { retryable: true }, 3, 2, null],
  ]
  for (const [title, error, attempt, retries, delayMs] of CASES) {
    test(title, ({ assert }) => {
      const decision = decideRetry({ error, attempt, policy: { ...policy, retries }, jitter: 0 })
      assert.deepEqual(
        decision,
        delayMs === null ? { kind: 'give_up' } : { kind: 'retry', delayMs }
      )
    })
  }

  test('by default makes three further attempts', ({ assert }) => {
    const kinds = [1, 2, 3, 4].map(
      (attempt) => decideRetry({ error: {}, attempt, policy: DEFAULT_RETRY_POLICY, jitter: 0 }).kind
    )
    assert.deepEqual(kinds, ['retry', 'retry', 'retry', 'give_up'])
  })

  test('gives up on what a body caught of a FatalError and threw again', ({ assert }) => {
    const caught = new StepError(serializeError(new FatalError('x', 'y')), 1)
    const decision = decideRetry({
      error: caught,
      attempt: 1,
      policy: DEFAULT_RETRY_POLICY,
      jitter: 0,
    })
    assert.deepEqual(decision, { kind: 'give_up' })
  })
})

import { backoffMs, DEFAULT_BACKOFF, type Backoff } from './backoff.ts'

/** How often a failed attempt is followed by another one. */
export interface RetryPolicy {
  /** Attempts after the first. 0 = none. */
  retries: number
  backoff: Readonly<Backoff>
}

/** Three further attempts. */
export const DEFAULT_RETRY_POLICY: Readonly<RetryPolicy> = Object.freeze({
  retries: 3,
  backoff: DEFAULT_BACKOFF,
})

/** The policy of what may say how often and after how long it is retried. `backoffMs`: before the second attempt. */
export function retryPolicy(options: {
  retries?: number | undefined
  backoffMs?: number | undefined
}): RetryPolicy {
  const { retries = DEFAULT_RETRY_POLICY.retries, backoffMs: firstMs } = options
  const { backoff } = DEFAULT_RETRY_POLICY
  return { retries, backoff: firstMs === undefined ? backoff : { ...backoff, firstMs } }
}

export type RetryDecision = { kind: 'retry'; delayMs: number } | { kind: 'give_up' }

/**
 * What follows a failed attempt.
 *
 * @param params.error the failure; `retryable: false` (every `FatalError` has it) ends the attempts at once
 * @param params.attempt number of the attempt that failed, the first is 1
 * @param params.jitter a random number in [0, 1)
 */
export function decideRetry(params: {
  error: { readonly retryable?: boolean | undefined }
  attempt: number
  policy: Readonly<RetryPolicy>
  jitter: number
}): RetryDecision {
  const { error, attempt, policy, jitter } = params
  if (error.retryable === false || attempt > policy.retries) return { kind: 'give_up' }
  return { kind: 'retry', delayMs: backoffMs({ attempt, jitter, backoff: policy.backoff }) }
}

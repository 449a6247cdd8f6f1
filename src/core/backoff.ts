/** How long to wait between attempts. */
export interface Backoff {
  /** Before the second attempt, in ms. */
  firstMs: number
  /** By what each further wait is longer than the one before it. */
  factor: number
  /** No wait is longer, in ms. */
  maxMs: number
}

/**
 * 250 ms, 500 ms, 1 s, ... up to 30 s. With the default number of retries no wait exceeds a second, so that a step
 * is retried within its turn.
 */
export const DEFAULT_BACKOFF: Readonly<Backoff> = Object.freeze({
  firstMs: 250,
  factor: 2,
  maxMs: 30_000,
})

/**
 * The wait after failed attempt `attempt` (the first is 1), in whole ms, spread over the upper half of its nominal
 * length so that what failed together is not retried together.
 *
 * @param params.jitter a random number in [0, 1): 0 gives half of the nominal wait, close to 1 all of it
 */
export function backoffMs(params: {
  attempt: number
  jitter: number
  backoff?: Readonly<Backoff>
}): number {
  const { firstMs, factor, maxMs } = params.backoff ?? DEFAULT_BACKOFF
  const nominal = Math.min(maxMs, firstMs * factor ** (params.attempt - 1))
  return Math.round(nominal * (0.5 + params.jitter / 2))
}

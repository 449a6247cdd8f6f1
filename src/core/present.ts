import { E_INTERNAL } from '../errors.ts'

/** What has to be there. Throws where it is not: a made-up value would do harm unseen. */
export function the<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new E_INTERNAL([`${what} is missing`])
  return value
}

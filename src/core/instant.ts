import { E_INVALID_INSTANT } from '../errors.ts'

/** A Date, ms since 1970 UTC, an ISO 8601 text with its offset, or a value such as a Luxon DateTime. */
export type Instant = Date | number | string | { toMillis(): number }

// Without an offset a text means another instant on each machine.
const ISO_WITH_OFFSET = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})$/

/** Milliseconds UTC. Throws E_INVALID_INSTANT. */
export function parseInstant(value: Instant): number {
  const ms = read(value)
  if (Number.isFinite(ms)) return Math.round(ms)
  throw new E_INVALID_INSTANT([String(value)])
}

function read(value: unknown): number {
  if (typeof value === 'number') return value
  if (typeof value === 'string') return ISO_WITH_OFFSET.test(value) ? Date.parse(value) : Number.NaN
  if (typeof value !== 'object' || value === null) return Number.NaN
  if (value instanceof Date) return value.getTime()
  if ('toMillis' in value && typeof value.toMillis === 'function') return Number(value.toMillis())
  return Number.NaN
}

import { E_INVALID_DURATION } from '../errors.ts'

/** Timers count in 31 bits of milliseconds; a longer wait would fire at once. */
export const LONGEST_TIMER_MS = 2_147_483_647

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

const UNITS: readonly (readonly [ms: number, ...names: string[]])[] = [
  [1, '', 'ms', 'msec', 'msecs', 'millisecond', 'milliseconds'],
  [SECOND, 's', 'sec', 'secs', 'second', 'seconds'],
  [MINUTE, 'm', 'min', 'mins', 'minute', 'minutes'],
  [HOUR, 'h', 'hr', 'hrs', 'hour', 'hours'],
  [DAY, 'd', 'day', 'days'],
  [7 * DAY, 'w', 'wk', 'wks', 'week', 'weeks'],
  [365.25 * DAY, 'y', 'yr', 'yrs', 'year', 'years'],
]
const UNIT_MS: ReadonlyMap<string, number> = new Map(
  UNITS.flatMap(([ms, ...names]) => names.map((name) => [name, ms] as const))
)

const WHOLE = /^(?:(?:\d+\.?\d*|\.\d+) *[a-z]+ *)+$|^(?:\d+\.?\d*|\.\d+)$/
const PART = /(\d+\.?\d*|\.\d+) *([a-z]*)/g

function refuse(value: unknown, problem: string): never {
  throw new E_INVALID_DURATION([
    typeof value === 'string' ? JSON.stringify(value) : String(value),
    problem,
  ])
}

function parseText(text: string): number {
  const trimmed = text.trim().toLowerCase()
  if (trimmed.startsWith('-')) refuse(text, 'it is negative')
  if (!WHOLE.test(trimmed)) refuse(text, 'it is not a number with a unit')
  let total = 0
  for (const [, amount = '', unit = ''] of trimmed.matchAll(PART)) {
    const ms = UNIT_MS.get(unit)
    if (ms === undefined) refuse(text, `"${unit}" is not a unit of time`)
    total += Number(amount) * ms
  }
  return total
}

/**
 * Milliseconds of a duration, a whole number of at least 0. A number is milliseconds; a text is one or more numbers
 * with units (`500ms`, `5s`, `10 m`, `1.5 hours`, `2 days`, `1h30m`; without a unit: milliseconds). Throws
 * `E_INVALID_DURATION` for anything else, negative and infinite ones included.
 */
export function parseDuration(value: string | number): number {
  if (typeof value !== 'number' && typeof value !== 'string')
    refuse(value, 'it is neither a number nor a text')
  const ms = Math.round(typeof value === 'number' ? value : parseText(value))
  if (Number.isNaN(ms)) refuse(value, 'it is not a number')
  if (ms < 0) refuse(value, 'it is negative')
  if (!Number.isSafeInteger(ms)) refuse(value, 'it is too long')
  return ms === 0 ? 0 : ms
}

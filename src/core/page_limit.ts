const DEFAULT_LIMIT = 50
const MAX_LIMIT = 1_000

/** How many runs a page may have: what was asked for as a whole number from 1 to 1,000; 50 where nothing was. */
export function pageLimit(asked: number = DEFAULT_LIMIT): number {
  return Math.max(1, Math.min(Math.floor(asked) || 1, MAX_LIMIT))
}

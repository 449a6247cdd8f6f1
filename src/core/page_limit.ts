const DEFAULT_LIMIT = 50
/** The most runs that a page may have. */
export const MAX_PAGE = 1_000

export function isPageLimit(value: unknown): value is number {
  return Number.isInteger(value) && Number(value) >= 1 && Number(value) <= MAX_PAGE
}

/** How many runs a page may have: what was asked for as a whole number from 1 to 1,000; 50 where nothing was. */
export function pageLimit(asked: number = DEFAULT_LIMIT): number {
  return Math.max(1, Math.min(Math.floor(asked) || 1, MAX_PAGE))
}

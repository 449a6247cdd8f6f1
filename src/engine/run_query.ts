import { inspect } from 'node:util'
import type { RunQuery } from '../contracts/store.ts'
import { isName, isRunId } from '../core/name.ts'
import { isPageLimit, MAX_PAGE } from '../core/page_limit.ts'
import { isRunStatus, RUN_STATUSES } from '../core/run.ts'
import { E_INVALID_OPTION } from '../errors.ts'

interface Rule {
  expected: string
  accepts(value: unknown): boolean
}

const NAME: Rule = {
  expected: 'a name of 1 to 200 characters without white space',
  accepts: isName,
}

/** What each option of a listing may be: such values come from the query strings of requests. */
export const RUN_QUERY: Readonly<Record<keyof RunQuery, Rule>> = {
  ids: {
    expected: 'a list of run ids',
    accepts: (value) => Array.isArray(value) && value.every(isRunId),
  },
  status: { expected: `one of ${RUN_STATUSES.join(', ')}`, accepts: isRunStatus },
  workflow: NAME,
  namespace: NAME,
  tag: NAME,
  attributes: {
    expected: 'an object of texts, numbers, booleans and dates',
    accepts: (value) =>
      typeof value === 'object' && value !== null && Object.values(value).every(isAttribute),
  },
  parentId: { expected: 'a run id', accepts: isRunId },
  limit: { expected: `a whole number from 1 to ${MAX_PAGE}`, accepts: isPageLimit },
  after: {
    expected: 'the "next" of the page before',
    accepts: (value) => typeof value === 'string',
  },
}

/**
 * Throws E_INVALID_OPTION for the first value that no listing takes; what is undefined was not given.
 *
 * @param shown how the message calls an option
 */
export function checkRunQuery(
  query: RunQuery,
  shown = (option: keyof RunQuery) => `option "${option}" of engine.listRuns()`
): void {
  for (const option of Object.keys(RUN_QUERY) as (keyof RunQuery)[]) {
    const value: unknown = query[option]
    const { expected, accepts } = RUN_QUERY[option]
    if (value === undefined || accepts(value)) continue
    const got = inspect(value, { depth: 1, maxStringLength: 60, breakLength: Infinity })
    throw new E_INVALID_OPTION([shown(option), got, expected])
  }
}

function isAttribute(value: unknown): boolean {
  if (value instanceof Date) return !Number.isNaN(value.getTime())
  return typeof value === 'number'
    ? Number.isFinite(value)
    : typeof value === 'string' || typeof value === 'boolean'
}

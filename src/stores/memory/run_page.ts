import type { RunQuery, StoredRunPage } from '../../contracts/store.ts'
import { pageLimit } from '../../core/page_limit.ts'
import type { RunRow } from '../../core/run.ts'
import { attributeText } from '../../core/search_attributes.ts'
import { cursorOf, positionOfCursor, type RunPosition } from '../../core/run_cursor.ts'
import type { RunTable } from './run_table.ts'

/** One page of runs, newest first; runs of one instant by id. */
export function runPage(runs: RunTable, query: RunQuery): StoredRunPage {
  const limit = pageLimit(query.limit)
  const after = query.after === undefined ? null : positionOfCursor(query.after)
  const candidates = query.parentId === undefined ? runs.rows() : runs.childrenOf(query.parentId)
  const matching = [...candidates]
    .filter((row) => matches(runs, row, query) && (after === null || newestFirst(after, row) < 0))
    .sort(newestFirst)
  const page = matching.slice(0, limit)
  const last = page.at(-1)
  return {
    runs: page.map((row) => runs.get(row.id)).filter((row) => row !== undefined),
    next: last && matching.length > page.length ? cursorOf(last) : null,
  }
}

function matches(runs: RunTable, row: RunRow, query: RunQuery): boolean {
  const { ids, status, workflow, namespace, tag, attributes = {} } = query
  return (
    (ids === undefined || ids.includes(row.id)) &&
    (status === undefined || row.status === status) &&
    (workflow === undefined || row.workflow === workflow) &&
    (namespace === undefined || row.namespace === namespace) &&
    (tag === undefined || runs.tags(row.id).includes(tag)) &&
    Object.entries(attributes).every(([name, value]) => {
      const own = runs.attributes(row.id)[name]
      return own !== undefined && attributeText(own) === attributeText(value)
    })
  )
}

function newestFirst(a: RunPosition, b: RunPosition): number {
  if (a.createdAt !== b.createdAt) return b.createdAt - a.createdAt
  if (a.id === b.id) return 0
  return a.id < b.id ? 1 : -1
}

import type { RunQuery, StoredRunPage } from '../../contracts/store.ts'
import { pageLimit } from '../../core/page_limit.ts'
import { cursorOf, positionOfCursor } from '../../core/run_cursor.ts'
import { attributeText } from '../../core/search_attributes.ts'
import type { Dialect, Statement, Value } from './dialect.ts'
import { type RunColumns, runColumns, toRun } from './run_rows.ts'

const HAS_ATTRIBUTE =
  'r.id in (select a.run_id from durable_attributes a where a.name = ? and a.value = ?)'

/** One page, newest first, found by the key of the last run of the page before. */
export async function listRuns(dialect: Dialect, query: RunQuery): Promise<StoredRunPage> {
  const limit = pageLimit(query.limit)
  const rows = await dialect.read<RunColumns>(pageStatement(query, limit + 1, dialect.sql.texts))
  const runs = rows.slice(0, limit).map(toRun)
  const last = runs.at(-1)
  const next = rows.length > limit && last ? cursorOf(last) : null
  return { runs, next }
}

function pageStatement(query: RunQuery, limit: number, texts: string): Statement {
  const values: Value[] = []
  const conditions: string[] = []
  const where = (condition: string, ...bound: Value[]) => {
    conditions.push(condition)
    values.push(...bound)
  }
  const { ids, status, workflow, namespace, parentId, tag, attributes = {}, after } = query
  const key = tag === undefined ? 'r.created_at, r.id' : 't.created_at, t.run_id'
  if (ids !== undefined) where(`r.id in (${texts})`, JSON.stringify(ids))
  if (tag !== undefined) where('t.tag = ?', tag)
  if (status !== undefined) where('r.status = ?', status)
  if (workflow !== undefined) where('r.workflow = ?', workflow)
  if (namespace !== undefined) where('r.namespace = ?', namespace)
  for (const [name, value] of Object.entries(attributes))
    where(HAS_ATTRIBUTE, name, attributeText(value))
  if (parentId !== undefined) where('r.parent_id = ?', parentId)
  if (after !== undefined) {
    const { createdAt, id } = positionOfCursor(after)
    where(`(${key}) < (?, ?)`, createdAt, id)
  }
  const from =
    tag === undefined ? 'durable_runs r' : 'durable_tags t join durable_runs r on r.id = t.run_id'
  const filter = conditions.length === 0 ? '' : `where ${conditions.join(' and ')}`
  const order = key.replaceAll(/(\w+\.\w+)/g, '$1 desc')
  return {
    sql: `select ${runColumns('r')} from ${from} ${filter} order by ${order} limit ?`,
    values: [...values, limit],
  }
}

import { PRIORITIES, RUN_FORMAT } from '../../core/run.ts'
import type { Statement, Value } from './dialect.ts'

/** Databases limit how many queries a compound one may have; four of ours belong to a key. */
const KEYS_PER_STATEMENT = 100

/**
 * Queries for due runs, by priority and due time: of each key and priority one range of the index of due rows, with
 * a limit of its own, so that no row is looked at that cannot be among the answers. The clock is read once a query,
 * and comes with every row as `now`. A worker that has been found lost gets nothing.
 *
 * @param columns what is selected of a run; `priority` and `due_at` come in any case
 */
export function claimStatements(params: {
  owner: string
  claimKeys: readonly string[]
  limit: number
  now: string
  columns: string
}): Statement[] {
  const { owner, claimKeys, limit, now, columns } = params
  const statements: Statement[] = []
  for (let from = 0; from < claimKeys.length; from += KEYS_PER_STATEMENT) {
    const keys = claimKeys.slice(from, from + KEYS_PER_STATEMENT)
    const probes = keys.flatMap(() => PRIORITIES.map((priority) => probe(priority, columns)))
    const values = keys.flatMap((key) => PRIORITIES.flatMap((): Value[] => [key, limit]))
    statements.push({
      sql: `with clock as materialized (select ${now} as at)
        select due.*, (select at from clock) as now from (${probes.join(' union all ')}) due
        where not exists (select 1 from durable_workers where instance = ? and lost = 1)
        order by due.priority, due.due_at limit ?`,
      values: [...values, owner, limit],
    })
  }
  return statements
}

function probe(priority: number, columns: string): string {
  return `select * from (select ${columns} from durable_runs r where r.claim_key = ? and r.priority = ${priority}
    and r.due_at is not null and r.due_at <= (select at from clock) and r.format <= ${RUN_FORMAT}
    order by r.due_at limit ?)`
}

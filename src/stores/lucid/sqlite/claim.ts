import { PRIORITIES, RUN_FORMAT, type RunRow } from '../../../core/run.ts'
import { claimed } from '../../../core/transition.ts'
import type { ClaimRequest } from '../../../contracts/store.ts'
import { type RunColumns, runColumns, toRun, UPDATE_RUN, updateValues } from '../run_rows.ts'
import type { SqliteConnection } from './connection.ts'
import { FRAGMENTS } from './fragments.ts'

const CLOCK = `with clock as materialized (select ${FRAGMENTS.now} as at)`
const CLASSES = PRIORITIES.map((priority) => `select ${priority} as value`).join(' union all ')

/** Every key with every priority. */
const PROBES = `(${FRAGMENTS.texts}) k cross join (${CLASSES}) p`
/** Only a live worker gets any: what others took would be taken from them again. */
const IS_LIVE = 'exists (select 1 from durable_workers where instance = ? and lost = 0)'

/** The due runs of one key and priority: a range of the index of due rows. */
const RANGE = `durable_runs x where x.claim_key = k.value and x.priority = p.value
  and x.due_at is not null and x.due_at <= (select at from clock) and x.format <= ${RUN_FORMAT}`

/** Values: claim keys, instance. */
export const IS_ANY_DUE = `${CLOCK} select 1 from ${PROBES}
  where ${IS_LIVE} and exists (select 1 from ${RANGE}) limit 1`

/**
 * Values: claim keys, instance, limit, limit. Of each range at most the limit is read, so that no row is looked at
 * that cannot be among the answers; the cross joins fix the order of the loops whatever statistics say.
 */
export const DUE_RUNS = `${CLOCK} select ${runColumns('r')}, (select at from clock) as now
  from ${PROBES} cross join durable_runs r
  where ${IS_LIVE} and r.rowid in (select x.rowid from ${RANGE} order by x.due_at limit ?)
  order by r.priority, r.due_at limit ?`

/** Looks first without the write lock: a worker with nothing to do neither waits for others nor makes them wait. */
export async function claimDue(
  connection: SqliteConnection,
  { owner, claimKeys, limit }: ClaimRequest
): Promise<RunRow[]> {
  if (claimKeys.length === 0 || limit < 1) return []
  const keys = JSON.stringify([...new Set(claimKeys)])
  const isAnyDue = await connection.attempt(
    () => connection.all({ sql: IS_ANY_DUE, values: [keys, owner] }).length > 0
  )
  if (!isAnyDue) return []
  return connection.transaction(() => {
    const values = [keys, owner, limit, limit]
    const due = connection.all<RunColumns & { now: number }>({ sql: DUE_RUNS, values })
    const taken = due.map((row) => claimed(toRun(row), { owner, now: row.now }))
    for (const run of taken) connection.run({ sql: UPDATE_RUN, values: updateValues(run) })
    return taken
  })
}

import { PRIORITIES, RUN_FORMAT } from '../../../core/run.ts'
import type { ClaimRequest } from '../../../contracts/store.ts'
import { runColumns } from '../run_rows.ts'
import { FRAGMENTS } from './fragments.ts'
import type { PgStatement } from './session.ts'

const CLASSES = PRIORITIES.join(', ')

/** What a due run of key `k` and priority `p` looks like; again asked of the row once it is locked. */
function isDue(alias: string): string {
  return `${alias}.claim_key = k.value and ${alias}.priority = p.value and ${alias}.due_at is not null
    and ${alias}.due_at <= (select at from clock) and ${alias}.format <= ${RUN_FORMAT}`
}

/**
 * Values: claim keys, how many rows of each range are looked at, instance, limit, instance. Of each key and priority a
 * range of the index of due rows is read, whatever lies beside it. Rows are locked in the order in which they are
 * taken, until there are enough; those that others are taking are passed over. The state of the row is what it is under
 * its lock. A worker that has been found lost gets nothing: nobody would look for the runs it took.
 */
export const CLAIM = `with clock as materialized (select ${FRAGMENTS.now} as at),
  due as materialized (
    select r.id, p.value as class, r.due_at as since
    from unnest(?::text[]) as k (value) cross join unnest(array[${CLASSES}]) as p (value)
    cross join lateral (select x.id from durable_runs x where ${isDue('x')} order by x.due_at limit ?) x
    join durable_runs r on r.id = x.id
    where ${isDue('r')} and not exists (select 1 from durable_workers where instance = ? and lost = 1)
    order by p.value, r.due_at limit ?
    for no key update of r skip locked),
  taken as (
    update durable_runs r set status = 'running', due_at = null, owner = ?, token = r.token + 1, wake_seq = null,
      recovery_attempts = r.recovery_attempts + (r.status = 'running')::integer,
      started_at = coalesce(r.started_at, (select at from clock)), updated_at = (select at from clock)
    from due where r.id = due.id
    returning ${runColumns('r')}, due.class, due.since)
  select * from taken order by class, since`

/** How many more rows than wanted are looked at, so that a second worker finds its share beside the first. */
const SPARE = 2

export function claimStatement({ owner, claimKeys, limit }: ClaimRequest): PgStatement {
  return { sql: CLAIM, values: [[...new Set(claimKeys)], limit * SPARE, owner, limit, owner] }
}

/** Runs that an instance holds, whether it knows of them or not. Values: instance. */
export const HELD_RUNS = `select ${runColumns('r')} from durable_runs r
  where r.owner = ? and r.status = 'running' and r.due_at is null`

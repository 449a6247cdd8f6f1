import { PRIORITIES, RUN_FORMAT } from '../../../core/run.ts'
import type { ClaimRequest } from '../../../contracts/store.ts'
import { runColumns } from '../run_rows.ts'
import { FRAGMENTS } from './fragments.ts'
import type { PgStatement } from './session.ts'

const CLASSES = PRIORITIES.join(', ')

/** Asked of the index, and again of each row once it is locked. */
function isDue(alias: string): string {
  return `${alias}.due_at is not null and ${alias}.due_at <= (select at from clock) and ${alias}.format <= ${RUN_FORMAT}`
}

/**
 * Values: claim keys, how many rows of each range are looked at, instance, limit, instance. Of each key and priority a
 * range of the index of due rows is read, whatever lies beside it. Rows are locked in the order in which they are
 * taken, until there are enough; those that others are taking are passed over. The state of the row is what it is under
 * its lock. Only a live worker gets any: what others took would be taken from them again.
 */
export const CLAIM = `with clock as materialized (select ${FRAGMENTS.now} as at),
  found as materialized (
    select x.id, p.value as class, x.due_at as since
    from unnest(?::text[]) as k (value) cross join unnest(array[${CLASSES}]) as p (value)
    cross join lateral (
      select x.id, x.due_at from durable_runs x
      where x.claim_key = k.value and x.priority = p.value and ${isDue('x')} order by x.due_at limit ?) x
    where exists (select 1 from durable_workers where instance = ? and lost = 0)),
  due as materialized (
    select f.class, f.since, r.id from (select * from found order by class, since) f
    cross join lateral (
      select r.id from durable_runs r where r.id = f.id and ${isDue('r')} for no key update skip locked) r
    limit ?),
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

import type { StrandedReason, StrandedRun } from '../../contracts/store.ts'
import type { Dialect } from './dialect.ts'

/** An entry in the inbox of `r`. */
const UNREAD = `exists (select 1 from durable_inbox i where i.run_id = r.id)`

/** An entry that wakes `r` however many ends of children it waits for. */
const URGENT = `exists (
  select 1 from durable_inbox i left join durable_runs c on c.id = i.child_id
  where i.run_id = r.id
    and (i.kind in ('signal', 'result') or i.child_event in ('started', 'taken')
      or (i.child_event = 'failed' and coalesce(c.parent_fail_fast, 1) = 1)))`

/** The children of the open wait `w` of `r` that tell it of their end. */
const CHILDREN = `select 1 from durable_runs c
  where c.parent_id = r.id and c.parent_seq = w.seq and c.parent_awaited = 1`

/** An open wait of `r` for children of which there is no row. */
const MISSING_CHILD = `exists (
  select 1 from durable_waits w
  where w.run_id = r.id and w.kind in ('child', 'all', 'all_settled') and not exists (${CHILDREN}))`

/** An open wait of `r` that somebody else can still end: a signal that may come, or a child that has not ended. */
const AWAITABLE = `exists (
  select 1 from durable_waits w
  where w.run_id = r.id
    and ((w.token is not null and w.served = 0)
      or exists (${CHILDREN} and c.status in ('pending', 'running', 'suspended', 'blocked'))))`

/** An open wait of `r` that ends by time, which a run without a due time has lost. */
const TIMED = `exists (select 1 from durable_waits w where w.run_id = r.id and w.due_at is not null)`

/**
 * Live runs that nothing will wake, each with the first reason that holds, in order of id. Reads runs by status, and of the suspended
 * ones without a due time their waits and inbox; never history.
 */
export async function findStranded(dialect: Dialect): Promise<StrandedRun[]> {
  const { now } = dialect.sql
  const rows = await dialect.read<{ id: string; reason: StrandedReason | null }>({
    sql: `select * from (
      select r.id, 'no_due_time' as reason from durable_runs r
        where r.status in ('pending', 'blocked') and r.due_at is null
      union all
      select r.id, 'unknown_owner' from durable_runs r
        where r.status = 'running' and r.due_at is null
          and not exists (select 1 from durable_workers w where w.instance = r.owner)
      union all
      select r.id, case
          when ${UNREAD} and (r.wake_seq is null or r.inbox_seq >= r.wake_seq or ${URGENT}) then 'unread_inbox'
          when r.due_at is not null then null
          when ${MISSING_CHILD} then 'missing_child'
          when ${TIMED} or not ${AWAITABLE} then 'no_wake'
        end
        from durable_runs r
        where r.status = 'suspended' and (r.due_at is null or r.due_at > ${now})
    ) found where reason is not null`,
    values: [],
  })
  return rows
    .flatMap(({ id, reason }) => (reason === null ? [] : { runId: id, reason }))
    .sort((one, other) => (one.runId < other.runId ? -1 : 1))
}

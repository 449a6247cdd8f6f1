import type { Fragments, RowUpdate, Statement, Value } from './dialect.ts'

/** What `durable_workers.lost` says of a lost worker. */
export const LOST = 1
const LOST_WITH_SUSPECT = 2

/**
 * Owners of runs that are no live workers: lost ones, and those without a row. The index of owners is read from one to the
 * next, whatever the number of their runs.
 */
export const GONE = `with recursive owners (owner) as (
    select min(owner) from durable_runs where owner is not null
    union all select (select min(r.owner) from durable_runs r where r.owner > o.owner) from owners o
      where o.owner is not null)
  select owner from owners where owner is not null
    and not exists (select 1 from durable_workers w where w.instance = owner and w.lost = 0)`

const IN_FLIGHT = `exists (select 1 from durable_waits w
  where w.run_id = durable_runs.id and w.dispatch_attempt > w.attempts)`
const IS_SUSPECT = `substr(claim_key, 1, 1) = ' '`
/** Stands in for the time while one transaction decides. */
const BEING_PASSED_ON = 0

/** A run names this row of `durable_workers` as its owner. */
export const OWNS_RUNS =
  'exists (select 1 from durable_runs r where r.owner = durable_workers.instance)'

/** What becomes of a run whose pickup is no recovery. */
export function released(dueAt: string, { now }: Fragments): string {
  return `due_at = ${dueAt}, updated_at = ${now}, status = 'suspended', owner = null, wake_seq = null`
}

/**
 * Everything that becomes of the runs of lost workers, as `orphaned` of core/transition says. The first statement locks
 * them: only those after it are certain to see what others have sent to them and the waits as their workers have left
 * them, and what it has passed over is left to a later pass as a whole. Each of the others takes what is left. Only a
 * running run has an owner.
 *
 * @param values those of the query of the lost workers
 */
export function passOnRuns(
  sql: Fragments,
  params: {
    lostWorkers: string
    values: readonly Value[]
    suspectFrom: number | null
    skipLocked: boolean
  }
): Statement[] {
  const { lostWorkers, values, suspectFrom, skipLocked } = params
  const { now, update } = sql
  const runs = { table: 'durable_runs', key: 'id' }
  const owned = `owner in (${lostWorkers})`
  const left = `${owned} and updated_at = ${BEING_PASSED_ON}`
  const wake = `case when exists (select 1 from durable_inbox i where i.run_id = durable_runs.id) then ${now}
    else coalesce((select min(w.due_at) from durable_waits w where w.run_id = durable_runs.id), ${now}) end`
  const becomesSuspect =
    suspectFrom === null ? '1 = 0' : `recovery_attempts + 1 >= ${suspectFrom} and not ${IS_SUSPECT}`
  const statements = [
    update({
      ...runs,
      skipLocked,
      set: `updated_at = ${BEING_PASSED_ON}`,
      where: `${owned} and due_at is null`,
    }),
    // Of owners that do not count, or are not known.
    update({
      ...runs,
      set: released(now, sql),
      where: `${left} and not exists (
        select 1 from durable_workers w where w.instance = durable_runs.owner and w.counted = 1)`,
    }),
    // Beside a suspect.
    update({
      ...runs,
      set: `${released(now, sql)}, claim_key = ' ' || claim_key`,
      where: `${left} and not ${IS_SUSPECT} and exists (
        select 1 from durable_workers w where w.instance = durable_runs.owner and w.lost = ${LOST_WITH_SUSPECT})`,
    }),
    // Parked.
    update({
      ...runs,
      set: `${released(wake, sql)}, parked_at = ${now}`,
      where: `${left} and parked_at is null and phase = 'body' and ${IN_FLIGHT}`,
    }),
    update({
      ...runs,
      set: `due_at = ${now}, updated_at = ${now},
        claim_key = case when ${becomesSuspect} then ' ' || claim_key else claim_key end`,
      where: left,
    }),
  ]
  return statements.map((text) => ({ sql: text, values }))
}

/** A worker that executed a suspect is remembered as such: of its runs some may be passed on later than that one. */
export function markLost(
  { update }: Fragments,
  change: Pick<RowUpdate, 'where' | 'skipLocked'>
): string {
  const hadSuspect = `exists (select 1 from durable_runs
    where owner = durable_workers.instance and due_at is null and ${IS_SUSPECT})`
  return update({
    ...change,
    table: 'durable_workers',
    key: 'instance',
    set: `lost = case when ${hadSuspect} then ${LOST_WITH_SUSPECT} else ${LOST} end`,
  })
}

/**
 * Rows of lost workers that are of no use any more: no run names them, and their lease ended one lease ago. Until then
 * what such a worker took before it noticed is passed on as what it lost; later, as that of an owner who is not known.
 * A process that comes back finds no row: it renews and claims nothing, and goes on as a new instance.
 */
export function isForgotten({ now }: Fragments): string {
  return `lost <> 0 and lease_until + lease_ms <= ${now} and not ${OWNS_RUNS}`
}

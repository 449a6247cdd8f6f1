import type { Fragments, RowUpdate, Statement, Value } from './dialect.ts'

/** For a change of runs, by its key. */
export const RUNS = { table: 'durable_runs', key: 'id' } as const

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
export const BEING_PASSED_ON = 0

/** A run names this row of `durable_workers` as its owner. */
export const OWNS_RUNS =
  'exists (select 1 from durable_runs r where r.owner = durable_workers.instance)'

/** What becomes of a run whose pickup is no recovery; see `orphaned`. */
export function released(dueAt: string, { now }: Fragments): string {
  return `due_at = ${dueAt}, updated_at = ${now}, status = 'suspended', owner = null, token = token + 1, wake_seq = null`
}

/** What is done with the runs of lost workers, in this order and in one transaction. */
export interface PassingOn {
  /** Locks and marks them: as many rows as it changes are passed on. */
  take: Statement
  /** What becomes of those that are marked. Only these are certain to see what others had sent to them before the lock. */
  decide: Statement[]
}

/**
 * Everything that becomes of the runs of lost workers, as `orphaned` of core/transition says. What is not taken, because
 * others hold it, is left to a later pass as a whole.
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
): PassingOn {
  const { lostWorkers, values, suspectFrom, skipLocked } = params
  const { now, update } = sql
  // Only a running run has an owner.
  const owned = `owner in (${lostWorkers})`
  const take = update({
    ...RUNS,
    skipLocked,
    set: `updated_at = ${BEING_PASSED_ON}`,
    where: `${owned} and due_at is null`,
  })
  const wake = `case when exists (select 1 from durable_inbox i where i.run_id = durable_runs.id) then ${now}
    else coalesce((select min(w.due_at) from durable_waits w where w.run_id = durable_runs.id), ${now}) end`
  const isSuspectNow = suspectFrom === null ? '1 = 0' : `recovery_attempts + 1 >= ${suspectFrom}`
  // Each takes what those before it have left.
  const decisions: [condition: string, set: string][] = [
    [`not ${ownedBy('w.counted = 1')}`, released(now, sql)],
    [
      `not ${IS_SUSPECT} and ${ownedBy('w.had_suspect = 1')}`,
      `${released(now, sql)}, claim_key = ' ' || claim_key`,
    ],
    [
      `parked_at is null and phase = 'body' and ${IN_FLIGHT}`,
      `${released(wake, sql)}, parked_at = ${now}`,
    ],
    [
      '1 = 1',
      `due_at = ${now}, updated_at = ${now},
        claim_key = case when ${isSuspectNow} and not ${IS_SUSPECT} then ' ' || claim_key else claim_key end`,
    ],
  ]
  const isMarked = `${owned} and updated_at = ${BEING_PASSED_ON}`
  const decide = decisions.map(([condition, set]) => ({
    sql: update({ ...RUNS, set, where: `${isMarked} and ${condition}` }),
    values,
  }))
  return { take: { sql: take, values }, decide }
}

function ownedBy(worker: string): string {
  return `exists (select 1 from durable_workers w where w.instance = durable_runs.owner and ${worker})`
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
    set: `lost = 1, had_suspect = case when ${hadSuspect} then 1 else 0 end`,
  })
}

/**
 * Rows of lost workers that are of no use any more: no run names them, and their lease ended one lease ago. Until then
 * what such a worker took before it noticed is passed on as what it lost; later, as that of an owner who is not known.
 * A process that comes back finds no row: it renews and claims nothing, and goes on as a new instance.
 */
export function isForgotten({ now }: Fragments): string {
  return `lost = 1 and lease_until + lease_ms <= ${now} and not ${OWNS_RUNS}`
}

import type { NewWorker, RunStanding, SuspectRule, WorkerRow } from '../../contracts/store.ts'
import type { Dialect, Fragments, Statement, Value } from './dialect.ts'
import { readHeld } from './run_details.ts'

/**
 * Makes the runs of lost workers due, as `orphaned` of core/transition does. Also those that a worker took after it
 * had been found lost and before it noticed. Only a running run has an owner.
 */
function orphanRuns(
  { now, update }: Fragments,
  { lostWorkers, suspectFrom }: { lostWorkers: string; suspectFrom: number | null }
): string {
  const isSuspect =
    suspectFrom === null
      ? '1 = 0'
      : `recovery_attempts + 1 >= ${suspectFrom} and substr(claim_key, 1, 1) <> ' '`
  return update({
    table: 'durable_runs',
    key: 'id',
    set: `due_at = ${now}, updated_at = ${now},
      claim_key = case when ${isSuspect} then ' ' || claim_key else claim_key end`,
    where: `owner in (${lostWorkers}) and due_at is null`,
  })
}

/** Makes what these instances hold due: suspended, so that the pickup is no recovery. */
function handBackRuns({ now, update }: Fragments, instances: string): string {
  return update({
    table: 'durable_runs',
    key: 'id',
    set: `due_at = ${now}, updated_at = ${now}, status = 'suspended', owner = null, wake_seq = null`,
    where: `owner in (${instances}) and due_at is null`,
  })
}

/**
 * Runs of lost workers that executed a suspect, itself excepted: suspended, so that their pickup is no recovery, and
 * suspects from now on. Before `orphanRuns`.
 */
function suspectBystanders({ now, update }: Fragments, lostWorkers: string): string {
  const hadSuspect = `exists (select 1 from durable_runs s
    where s.owner = durable_workers.instance and s.due_at is null and substr(s.claim_key, 1, 1) = ' ')`
  return update({
    table: 'durable_runs',
    key: 'id',
    set: `due_at = ${now}, updated_at = ${now}, status = 'suspended', owner = null, wake_seq = null,
      claim_key = ' ' || claim_key`,
    where: `owner in (${lostWorkers} and ${hadSuspect}) and due_at is null and substr(claim_key, 1, 1) <> ' '`,
  })
}

const IN_FLIGHT = `exists (select 1 from durable_waits w
  where w.run_id = durable_runs.id and w.dispatch_attempt > w.attempts)`
/** Stands in for the time while one transaction decides. */
const BEING_PARKED = 0

/**
 * Runs of lost workers that wait for a step in flight, as `orphaned` of core/transition parks them. Before `orphanRuns`.
 * The first statement locks them: only the second is certain to see what others have sent to them and the waits as their
 * workers have left them.
 */
function parkRuns({ now, update }: Fragments, lostWorkers: string): [string, string] {
  const where = `owner in (${lostWorkers}) and due_at is null`
  const wake = `case when exists (select 1 from durable_inbox i where i.run_id = durable_runs.id) then ${now}
    else coalesce((select min(w.due_at) from durable_waits w where w.run_id = durable_runs.id), ${now}) end`
  return [
    update({
      table: 'durable_runs',
      key: 'id',
      set: `parked_at = ${BEING_PARKED}`,
      where: `${where} and parked_at is null and phase = 'body' and ${IN_FLIGHT}`,
    }),
    update({
      table: 'durable_runs',
      key: 'id',
      set: `due_at = ${wake}, parked_at = ${now}, updated_at = ${now}, status = 'suspended', owner = null,
        wake_seq = null`,
      where: `${where} and parked_at = ${BEING_PARKED}`,
    }),
  ]
}

/**
 * Everything that becomes of the runs of lost workers, in order: none of them is handed over twice.
 *
 * @param values those of the query of the lost workers
 */
function passOnRuns(
  sql: Fragments,
  params: { lostWorkers: string; values: readonly Value[]; suspectFrom: number | null }
): Statement[] {
  const { lostWorkers, values, suspectFrom } = params
  const statements = [
    handBackRuns(sql, `${lostWorkers} and counted = 0`),
    suspectBystanders(sql, lostWorkers),
    ...parkRuns(sql, lostWorkers),
    orphanRuns(sql, { lostWorkers, suspectFrom }),
  ]
  return statements.map((text) => ({ sql: text, values }))
}

/** The number of runs, of what `passOnRuns` has changed. */
function passedOn([back = 0, beside = 0, , parked = 0, orphaned = 0]: readonly number[]): number {
  return back + beside + parked + orphaned
}

function markLost({ update }: Fragments, where: string): string {
  return update({ table: 'durable_workers', key: 'instance', set: 'lost = 1', where })
}

/** The rows of `durable_workers`: a process holds all of its runs by one of them. */
export class Leases {
  #dialect: Dialect

  constructor(dialect: Dialect) {
    this.#dialect = dialect
  }

  async register(worker: NewWorker): Promise<{ takenOver: number }> {
    const { now } = this.#dialect.sql
    const {
      instance,
      name,
      leaseMs,
      descriptor,
      takeOver,
      suspectFrom = null,
      isCounted = true,
    } = worker
    this.#dialect.announced(instance)
    const announce = {
      sql: `insert into durable_workers (instance, name, lease_ms, lease_until, lost, counted, descriptor, started_at)
        values (?, ?, ?, ${now} + ?, 0, ?, ?, ${now})
        on conflict (instance) do update set lease_until = excluded.lease_until`,
      values: [instance, name, leaseMs, leaseMs, Number(isCounted), descriptor],
    }
    if (!takeOver) {
      await this.#dialect.write([announce])
      return { takenOver: 0 }
    }
    const lost = 'select instance from durable_workers where name = ? and lost = 1'
    const { sql, locksNames } = this.#dialect
    // A name that is not locked may be that of a live process: its lease decides.
    const isPredecessor = locksNames ? '' : ` and lease_until <= ${now}`
    const [, ...changed] = await this.#dialect.write([
      { sql: markLost(sql, `name = ? and lost = 0${isPredecessor}`), values: [name] },
      ...passOnRuns(sql, { lostWorkers: lost, values: [name], suspectFrom }),
      announce,
    ])
    return { takenOver: passedOn(changed) }
  }

  async renew(instance: string): Promise<boolean> {
    const { now } = this.#dialect.sql
    const [renewed = 0] = await this.#dialect.write([
      {
        sql: `update durable_workers set lease_until = ${now} + lease_ms where instance = ? and lost = 0`,
        values: [instance],
      },
    ])
    if (renewed === 0) this.#dialect.withdrawn(instance)
    return renewed > 0
  }

  async describe(instance: string, descriptor: string): Promise<void> {
    await this.#dialect.write([
      {
        sql: 'update durable_workers set descriptor = ? where instance = ?',
        values: [descriptor, instance],
      },
    ])
  }

  async remove(instance: string): Promise<void> {
    this.#dialect.withdrawn(instance)
    const values = [instance]
    await this.#dialect.write([
      { sql: handBackRuns(this.#dialect.sql, '?'), values },
      { sql: 'delete from durable_workers where instance = ?', values },
    ])
  }

  async held(instance: string): Promise<RunStanding[]> {
    const compare = this.#dialect.comparing(instance)
    const held = await readHeld(this.#dialect, instance)
    compare(held)
    return held
  }

  /** Looks first without the write lock. */
  async recoverExpired({ suspectFrom = null }: SuspectRule = {}): Promise<{
    workers: number
    runs: number
  }> {
    const { now } = this.#dialect.sql
    const lost = 'select instance from durable_workers where lost = 1'
    const found = await this.#dialect.read({
      sql: `select 1 from durable_workers where lost = 0 and lease_until <= ${now}
        union all select 1 from durable_runs
          where owner in (${lost}) and due_at is null limit 1`,
      values: [],
    })
    if (found.length === 0) return { workers: 0, runs: 0 }
    const { sql } = this.#dialect
    const [workers = 0, ...changed] = await this.#dialect.write([
      { sql: markLost(sql, `lost = 0 and lease_until <= ${now}`), values: [] },
      ...passOnRuns(sql, { lostWorkers: lost, values: [], suspectFrom }),
    ])
    return { workers, runs: passedOn(changed) }
  }

  async list(): Promise<WorkerRow[]> {
    const rows = await this.#dialect.read<{
      instance: string
      name: string
      lease_until: number
      lost: number
      descriptor: string
      started_at: number
    }>({ sql: 'select * from durable_workers order by started_at, instance', values: [] })
    return rows.map((row) => ({
      instance: row.instance,
      name: row.name,
      until: row.lease_until,
      lost: row.lost === 1,
      descriptor: row.descriptor,
      startedAt: row.started_at,
    }))
  }
}

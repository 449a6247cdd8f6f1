import type { NewWorker, WorkerRow } from '../../contracts/store.ts'
import type { Dialect, Fragments } from './dialect.ts'

/**
 * Makes the runs of lost workers due, as `orphaned` of core/transition does. Also those that a worker took after it
 * had been found lost and before it noticed. Only a running run has an owner.
 */
function orphanRuns({ now, update }: Fragments, lostWorkers: string): string {
  return update({
    table: 'durable_runs',
    key: 'id',
    set: `due_at = ${now}, updated_at = ${now}`,
    where: `owner in (${lostWorkers}) and due_at is null`,
  })
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
    const { instance, name, leaseMs, descriptor, takeOver } = worker
    this.#dialect.announced(instance)
    const announce = {
      sql: `insert into durable_workers (instance, name, lease_ms, lease_until, lost, descriptor, started_at)
        values (?, ?, ?, ${now} + ?, 0, ?, ${now})
        on conflict (instance) do update set lease_until = excluded.lease_until`,
      values: [instance, name, leaseMs, leaseMs, descriptor],
    }
    if (!takeOver) {
      await this.#dialect.write([announce])
      return { takenOver: 0 }
    }
    const lost = 'select instance from durable_workers where name = ? and lost = 1'
    // A name that is not locked may be that of a live process: its lease decides.
    const isPredecessor = this.#dialect.locksNames ? '' : ` and lease_until <= ${now}`
    const [, takenOver = 0] = await this.#dialect.write([
      { sql: markLost(this.#dialect.sql, `name = ? and lost = 0${isPredecessor}`), values: [name] },
      { sql: orphanRuns(this.#dialect.sql, lost), values: [name] },
      announce,
    ])
    return { takenOver }
  }

  async renew(instance: string): Promise<boolean> {
    const { now } = this.#dialect.sql
    const [renewed = 0] = await this.#dialect.write([
      {
        sql: `update durable_workers set lease_until = ${now} + lease_ms where instance = ? and lost = 0`,
        values: [instance],
      },
    ])
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
    await this.#dialect.write([
      { sql: 'delete from durable_workers where instance = ?', values: [instance] },
    ])
  }

  /** Looks first without the write lock. */
  async recoverExpired(): Promise<{ workers: number; runs: number }> {
    const { now } = this.#dialect.sql
    const lost = 'select instance from durable_workers where lost = 1'
    const found = await this.#dialect.read({
      sql: `select 1 from durable_workers where lost = 0 and lease_until <= ${now}
        union all select 1 from durable_runs
          where owner in (${lost}) and due_at is null limit 1`,
      values: [],
    })
    if (found.length === 0) return { workers: 0, runs: 0 }
    const [workers = 0, runs = 0] = await this.#dialect.write([
      {
        sql: markLost(this.#dialect.sql, `lost = 0 and lease_until <= ${now}`),
        values: [],
      },
      { sql: orphanRuns(this.#dialect.sql, lost), values: [] },
    ])
    return { workers, runs }
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

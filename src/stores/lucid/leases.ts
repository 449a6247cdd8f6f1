import type { NewWorker, RunStanding, SuspectRule, WorkerRow } from '../../contracts/store.ts'
import type { Dialect, Statement, Value } from './dialect.ts'
import {
  BEING_PASSED_ON,
  GONE,
  isForgotten,
  markLost,
  OWNS_RUNS,
  passOnRuns,
  released,
  RUNS,
} from './lost_runs.ts'
import { readHeld } from './run_details.ts'

/** The rows of `durable_workers`: a process holds all of its runs by one of them. */
export class Leases {
  #dialect: Dialect
  #passesOver = false

  constructor(dialect: Dialect) {
    this.#dialect = dialect
  }

  /**
   * A row that a transaction of the application holds keeps back its own run alone: once it has been waited for in vain,
   * the rows that others hold are left to a later pass, until one finds nothing left.
   */
  async #passOn(statements: (skipLocked: boolean) => Statement[]): Promise<number[]> {
    try {
      return await this.#dialect.write(statements(this.#passesOver))
    } catch (error) {
      if (this.#passesOver || !this.#dialect.isHeldElsewhere(error)) throw error
    }
    this.#passesOver = true
    return this.#dialect.write(statements(true))
  }

  /** Whoever makes the runs of others due need not be able to take them. To be run while they name their owners. */
  #tellOf(isOwned: string, values: readonly Value[]): Promise<Statement[]> {
    const sql = `select 1 from durable_runs where ${isOwned} and due_at is null`
    return this.#dialect.tellingIf({ sql, values })
  }

  #tellOfPassedOn(lostWorkers: string, values: readonly Value[]): Promise<Statement[]> {
    return this.#tellOf(`owner in (${lostWorkers}) and updated_at = ${BEING_PASSED_ON}`, values)
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
      sql: `insert into durable_workers (instance, name, lease_ms, lease_until, lost, had_suspect, counted, descriptor, started_at)
        values (?, ?, ?, ${now} + ?, 0, 0, ?, ?, ${now})`,
      values: [instance, name, leaseMs, leaseMs, Number(isCounted), descriptor],
    }
    if (!takeOver) {
      await this.#dialect.write([announce])
      return { takenOver: 0 }
    }
    const lostWorkers = 'select instance from durable_workers where name = ? and lost = 1'
    const { sql, locksNames } = this.#dialect
    // A name that is not locked may be that of a live process: its lease decides.
    const isPredecessor = locksNames ? '' : ` and lease_until <= ${now}`
    const where = `name = ? and lost = 0${isPredecessor}`
    const values = [name]
    const tell = await this.#tellOfPassedOn(lostWorkers, values)
    const [, takenOver = 0] = await this.#passOn((skipLocked) => {
      const mark = { sql: markLost(sql, { where, skipLocked }), values }
      const { take, decide } = passOnRuns(sql, { lostWorkers, values, suspectFrom, skipLocked })
      return [mark, take, ...tell, ...decide, announce]
    })
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

  /** A run whose row others hold now is handed back by a later pass of recovery, uncounted too. */
  async remove(instance: string): Promise<void> {
    this.#dialect.withdrawn(instance)
    const { sql } = this.#dialect
    const values = [instance]
    const tell = await this.#tellOf('owner = ?', values)
    await this.#passOn((skipLocked) => [
      ...tell,
      {
        sql: `update durable_workers set lost = 1, counted = 0 where instance = ?`,
        values,
      },
      {
        sql: sql.update({
          ...RUNS,
          skipLocked,
          set: released(sql.now, sql),
          where: 'owner = ? and due_at is null',
        }),
        values,
      },
      { sql: `delete from durable_workers where instance = ? and not ${OWNS_RUNS}`, values },
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
    const { sql } = this.#dialect
    const hasExpired = `lost = 0 and lease_until <= ${sql.now}`
    const found = await this.#dialect.read({
      sql: `select 1 from durable_workers where (${hasExpired}) or (${isForgotten(sql)})
        union all select 1 from durable_runs where owner in (${GONE}) and due_at is null limit 1`,
      values: [],
    })
    if (found.length === 0) {
      this.#passesOver = false
      return { workers: 0, runs: 0 }
    }
    const tell = await this.#tellOfPassedOn(GONE, [])
    const [workers = 0, runs = 0] = await this.#passOn((skipLocked) => {
      const mark = { sql: markLost(sql, { where: hasExpired, skipLocked }), values: [] }
      const gone = { lostWorkers: GONE, values: [] }
      const { take, decide } = passOnRuns(sql, { ...gone, suspectFrom, skipLocked })
      const forget = { sql: `delete from durable_workers where ${isForgotten(sql)}`, values: [] }
      return [mark, take, ...tell, ...decide, forget]
    })
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

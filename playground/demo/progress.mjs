import Database from 'better-sqlite3'

const ENDED = ['completed', 'failed', 'cancelled', 'dead']

/** Reads, beside the workers and without writing, how far an import is. */
export class Progress {
  #database
  #lines
  #import
  #hands
  #announced
  #runId

  constructor({ file, runId }) {
    this.#database = new Database(file, { readonly: true, timeout: 5_000 })
    this.#lines = this.#database.prepare(
      'select status, count(*) as n from durable_runs where parent_id = ? group by status'
    )
    this.#import = this.#database.prepare('select status from durable_runs where id = ?')
    this.#hands = this.#database.prepare(
      `select w.name, count(*) as runs from durable_runs r join durable_workers w on w.instance = r.owner
       where r.owner is not null group by w.name order by runs desc`
    )
    this.#announced = this.#database.prepare(
      `select descriptor ->> 'pid' as pid from durable_workers where lost = 0`
    )
    this.#runId = runId
  }

  /** Lines by the status of their runs, how many have ended, and whether the import has. */
  read() {
    const byStatus = Object.fromEntries(
      this.#lines.all(this.#runId).map(({ status, n }) => [status, n])
    )
    const done = ENDED.reduce((sum, status) => sum + (byStatus[status] ?? 0), 0)
    return { byStatus, done, hasEnded: ENDED.includes(this.#import.get(this.#runId).status) }
  }

  /** The worker that executes most runs now, and how many; undefined when nothing is executed. */
  busiest() {
    return this.#hands.get()
  }

  /** Whether a process has announced itself as a worker. */
  isAnnounced({ pid }) {
    return this.#announced.all().some((worker) => worker.pid === pid)
  }

  close() {
    this.#database.close()
  }
}

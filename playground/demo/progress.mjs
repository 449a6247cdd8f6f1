const ENDED = ['completed', 'failed', 'cancelled', 'dead']

/** Reads, beside the workers and without writing, how far an import is. */
export class Progress {
  #database
  #runId

  /** @param params.database what `query(sql, values)` reads */
  constructor({ database, runId }) {
    this.#database = database
    this.#runId = runId
  }

  /** Lines by the status of their runs, how many have ended, and the status of the import if it has. */
  async read() {
    const rows = await this.#database.query(
      'select status, count(*) as n from durable_runs where parent_id = ? group by status',
      [this.#runId]
    )
    const byStatus = Object.fromEntries(rows.map(({ status, n }) => [status, Number(n)]))
    const done = ENDED.reduce((sum, status) => sum + (byStatus[status] ?? 0), 0)
    const [{ status }] = await this.#database.query(
      'select status from durable_runs where id = ?',
      [this.#runId]
    )
    return { byStatus, done, ended: ENDED.includes(status) ? status : null }
  }

  /** The worker that executes most runs now, and how many; undefined when nothing is executed. */
  async busiest() {
    const [worker] = await this.#database.query(
      `select w.name, count(*) as runs from durable_runs r join durable_workers w on w.instance = r.owner
       where r.owner is not null group by w.name order by runs desc limit 1`
    )
    return worker && { name: worker.name, runs: Number(worker.runs) }
  }

  /** The line's run that was lost most often, and how often; undefined when none was. */
  async mostOftenLost() {
    const [run] = await this.#database.query(
      `select id, recovery_attempts as times from durable_runs
       where parent_id = ? and status = 'running' and recovery_attempts > 0 order by times desc limit 1`,
      [this.#runId]
    )
    return run
  }

  /** The first ticket that was opened; undefined when there is none. */
  async ticket() {
    const [ticket] = await this.#database.query(
      'select title, reason, run_id as dead, retry_run_id as retry from tickets order by id limit 1'
    )
    return ticket
  }

  /** Process ids of the workers that have announced themselves. */
  async announced() {
    const workers = await this.#database.query(
      'select descriptor from durable_workers where lost = 0'
    )
    return new Set(workers.map(({ descriptor }) => JSON.parse(descriptor).pid))
  }
}

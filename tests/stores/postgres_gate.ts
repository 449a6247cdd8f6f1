import type pg from 'pg'
import type { Answer } from '../../src/core/change_set.ts'
import type { PostgresDatabase } from './postgres_database.ts'

/** The answer, once the write has been applied that had to wait for others. */
export function settled(answer: Answer): Answer | Promise<Answer> {
  return answer.type === 'held' ? answer.answer : answer
}

/** A transaction of somebody outside that holds rows until it is told to let go. */
export class Holder {
  #client: pg.Client

  private constructor(client: pg.Client) {
    this.#client = client
  }

  static async begin(database: PostgresDatabase): Promise<Holder> {
    const client = await database.client()
    await client.query('begin')
    return new Holder(client)
  }

  run(sql: string, values: unknown[] = []) {
    return this.#client.query(sql, values)
  }

  async lockRun(id: string): Promise<void> {
    await this.run('select 1 from durable_runs where id = $1 for update', [id])
  }

  /** A run that somebody else has stored, of a workflow that nobody executes. */
  async insertRun(id: string): Promise<void> {
    await this.run(
      `insert into durable_runs (id, workflow, version, claim_key, namespace, status, phase, priority, token,
        recovery_attempts, handoffs, inbox_seq, created_by, format, created_at, updated_at)
      values ($1, 'w', '1', 'k', 'default', 'suspended', 'body', 1, 0, 0, 0, 0, 'somebody', 1, 1, 1)`,
      [id]
    )
  }

  commit() {
    return this.run('commit')
  }

  rollback() {
    return this.run('rollback')
  }
}

/** Process ids of the sessions of durable that wait for a lock. */
async function waiting(database: PostgresDatabase): Promise<number[]> {
  const rows = await database.query<{ pid: number }>(
    `select pid from pg_stat_activity where datname = current_database() and application_name = 'durable'
      and wait_event_type = 'Lock' order by query_start`
  )
  return rows.map(({ pid }) => pid)
}

/** Looks until so many sessions wait for a lock; the caller's time-out ends a test in which they never do. */
export async function untilWaiting(database: PostgresDatabase, count: number): Promise<number[]> {
  for (;;) {
    const pids = await waiting(database)
    if (pids.length === count) return pids
  }
}

/** Looks until durable has so many sessions in the database. */
export async function untilSessions(database: PostgresDatabase, count: number): Promise<void> {
  for (;;) if ((await sessions(database)) === count) return
}

export async function sessions(database: PostgresDatabase): Promise<number> {
  const [row] = await database.query<{ count: number }>(
    `select count(*)::integer as count from pg_stat_activity
      where datname = current_database() and application_name = 'durable'`
  )
  return row?.count ?? 0
}

/** Deadlocks that the server has broken in this database. */
export async function deadlocks(database: PostgresDatabase): Promise<number> {
  const [row] = await database.query<{ deadlocks: number }>(
    'select deadlocks::integer from pg_stat_database where datname = current_database()'
  )
  return row?.deadlocks ?? 0
}

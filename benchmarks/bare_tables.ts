import { createDurableTables } from '../src/stores/lucid/schema.ts'

/** The statements of a bare writer, with the names of the values that are bound to them. */
export interface BareTables {
  /** Statements that make the tables. */
  definition: readonly string[]
  /** `ids`, a JSON array of the runs to write for: gives back those whose lease is still the writer's. */
  lock: string
  /** `id`, `input`: a run inserted under the writer's lease. */
  start: readonly string[]
  /** `id`, `input`, `parent`, `index`: a child that nobody has claimed. */
  spawn: readonly string[]
  /** `id` */
  claim: readonly string[]
  /** `id`, `seq`, `output` */
  record: readonly string[]
  /** `id`, `output` */
  complete: readonly string[]
  /** `id` of the parent, `no`, `child`: the end of a child, told to its parent. */
  tell: readonly string[]
  /** `id`: takes all that a parent was told. */
  take: readonly string[]
  /** What has been written. */
  tally: string
}

/** The kinds of rows that a bare writer writes. */
export type BareRow = Exclude<keyof BareTables, 'definition' | 'lock' | 'tally'>

const NOW = `cast(unixepoch('subsec') * 1000 as integer)`

/** What durable execution needs at the least: a run, its history, an index of due runs and one of leases. */
export const SLIM_TABLES: BareTables = {
  definition: [
    `create table runs (id text primary key, workflow text, version text, namespace text, status text, input text,
      output text, error text, wake_at integer, lease_owner text, lease_token integer default 0, lease_until integer,
      recovery integer default 0, priority integer default 0, parent_id text, parent_index integer,
      created_at integer, updated_at integer) without rowid`,
    `create index runs_due on runs (namespace, priority, wake_at) where status in ('pending', 'suspended')`,
    `create index runs_lease on runs (lease_until) where status = 'running'`,
    `create table history (run_id text, seq integer, ordinal integer, kind text, name text, status text, output text,
      error text, attempts integer, started_at integer, finished_at integer, primary key (run_id, seq)) without rowid`,
    `create table inbox (run_id text, no integer, child_id text, primary key (run_id, no)) without rowid`,
  ],
  lock: `select r.id from json_each(@ids) wanted join runs r on r.id = wanted.value where r.lease_token = 1`,
  start: [
    `insert into runs (id, input, workflow, version, namespace, status, lease_owner, lease_token, lease_until,
      created_at, updated_at) values (@id, @input, 'wf', '1', 'default', 'running', 'me', 1, ${NOW} + 30000, ${NOW}, ${NOW})`,
  ],
  spawn: [
    `insert into runs (id, input, parent_id, parent_index, workflow, version, namespace, status, wake_at, created_at,
      updated_at) values (@id, @input, @parent, @index, 'wf', '1', 'default', 'pending', ${NOW}, ${NOW}, ${NOW})`,
  ],
  claim: [
    `update runs set status = 'running', lease_owner = 'me', lease_token = 1, lease_until = ${NOW} + 30000,
      wake_at = null, updated_at = ${NOW} where id = @id`,
  ],
  record: [
    `insert into history (run_id, seq, output, ordinal, kind, name, status, attempts, started_at, finished_at)
      values (@id, @seq, @output, @seq, 'step', 'step', 'completed', 1, ${NOW}, ${NOW})`,
  ],
  complete: [
    `update runs set output = @output, status = 'completed', lease_owner = null, lease_until = null, updated_at = ${NOW}
      where id = @id`,
  ],
  tell: [`insert into inbox (run_id, no, child_id) values (@id, @no, @child)`],
  take: [`delete from inbox where run_id = @id`],
  tally: tallyOf({ runs: 'runs', history: 'history' }),
}

const RUN_COLUMNS = `id, workflow, version, claim_key, namespace, status, phase, priority, due_at, owner, token,
  recovery_attempts, inbox_seq, parent_id, parent_seq, parent_index, parent_awaited, parent_fail_fast, handoffs, created_by,
  format, created_at, started_at, updated_at`
const FIRST_VALUES = `@id, 'wf', '1', 'default wf 1', 'default'`
const PAYLOAD = `insert into durable_payloads (run_id, input) values (@id, @input)`

/** The same rows in the tables of the engine, with all of their columns and indexes. */
export const ENGINE_TABLES: BareTables = {
  definition: definitionOf(),
  lock: `select r.id from json_each(@ids) wanted join durable_runs r on r.id = wanted.value where r.token = 1`,
  start: [
    `insert into durable_runs (${RUN_COLUMNS}) values (${FIRST_VALUES}, 'running', 'body', 1, null, 'me', 1, 0, 0,
      null, null, null, null, null, 0, 'nonce', 1, ${NOW}, ${NOW}, ${NOW})`,
    PAYLOAD,
  ],
  spawn: [
    `insert into durable_runs (${RUN_COLUMNS}) values (${FIRST_VALUES}, 'pending', 'body', 1, ${NOW}, null, 0, 0, 0,
      @parent, 0, @index, 1, 1, 0, 'nonce', 1, ${NOW}, null, ${NOW})`,
    PAYLOAD,
  ],
  claim: [
    `update durable_runs set status = 'running', owner = 'me', token = 1, due_at = null, started_at = ${NOW},
      updated_at = ${NOW} where id = @id`,
  ],
  record: [
    `insert into durable_history (run_id, seq, output, generation, kind, name, called_after, ordinal, status, attempts,
      token, duration_ms, started_at, ended_at)
      values (@id, @seq, @output, 0, 'local_step', 'step', @seq, @seq, 'completed', 1, 1, 0, ${NOW}, ${NOW})`,
  ],
  complete: [
    `update durable_runs set status = 'completed', owner = null, ended_at = ${NOW}, updated_at = ${NOW} where id = @id`,
    `update durable_payloads set output = @output where run_id = @id`,
  ],
  tell: [
    `insert into durable_inbox (run_id, no, child_id, kind, seq, received_at, child_index, child_event)
      values (@id, @no, @child, 'child', 0, ${NOW}, 0, 'completed')`,
  ],
  take: [`delete from durable_inbox where run_id = @id`],
  tally: tallyOf({ runs: 'durable_runs', history: 'durable_history' }),
}

function tallyOf(tables: { runs: string; history: string }): string {
  return `select count(*) as runs, count(*) filter (where status = 'completed') as completed,
    (select count(*) from ${tables.history}) as records from ${tables.runs}`
}

function definitionOf(): string[] {
  const statements: string[] = []
  const schema = {
    client: { driverName: 'better-sqlite3' },
    raw: (sql: string) => statements.push(sql),
  }
  createDurableTables(schema, { version: 1 })
  return statements
}

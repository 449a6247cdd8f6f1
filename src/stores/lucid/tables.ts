/**
 * What a column holds. `key`: an identifier, compared and ordered by its bytes. `text`: of any length.
 * `integer`: small numbers and flags (0 and 1). `bigint`: instants and counters. `serial`: numbered by the
 * database in order of insertion, the primary key. A trailing `?` allows null.
 */
export type ColumnType =
  'key' | 'key?' | 'text' | 'text?' | 'integer' | 'integer?' | 'bigint' | 'bigint?' | 'serial'

export interface Index {
  name: string
  columns: readonly string[]
  unique?: boolean
  /** Only rows for which this holds are in the index, where the database can. */
  where?: string
}

export interface Table {
  name: string
  columns: Readonly<Record<string, ColumnType>>
  /** Left out where a `serial` column is the key. */
  primaryKey?: readonly string[]
  indexes: readonly Index[]
}

const RUNS: Table = {
  name: 'durable_runs',
  columns: {
    id: 'key',
    workflow: 'key',
    version: 'key',
    claim_key: 'key',
    namespace: 'key',
    origin: 'key?',
    status: 'key',
    phase: 'key',
    priority: 'integer',
    due_at: 'bigint?',
    owner: 'key?',
    token: 'bigint',
    recovery_attempts: 'integer',
    parked_at: 'bigint?',
    inbox_seq: 'bigint',
    wake_seq: 'bigint?',
    parent_id: 'key?',
    parent_seq: 'integer?',
    parent_index: 'integer?',
    parent_awaited: 'integer?',
    parent_fail_fast: 'integer?',
    handles_id: 'key?',
    handles_as: 'key?',
    route_chain: 'text?',
    handoffs: 'integer',
    deadline_at: 'bigint?',
    created_by: 'key',
    format: 'integer',
    error_code: 'key?',
    created_at: 'bigint',
    started_at: 'bigint?',
    updated_at: 'bigint',
    ended_at: 'bigint?',
  },
  primaryKey: ['id'],
  indexes: [
    {
      name: 'durable_runs_due',
      columns: ['claim_key', 'priority', 'due_at'],
      where: 'due_at is not null',
    },
    {
      name: 'durable_runs_deadline',
      columns: ['deadline_at'],
      where: 'deadline_at is not null and ended_at is null',
    },
    { name: 'durable_runs_owner', columns: ['owner'], where: 'owner is not null' },
    {
      name: 'durable_runs_parent',
      columns: ['parent_id', 'parent_seq', 'parent_index'],
      where: 'parent_id is not null',
    },
    { name: 'durable_runs_created', columns: ['created_at', 'id'] },
    { name: 'durable_runs_status', columns: ['status', 'created_at', 'id'] },
    { name: 'durable_runs_workflow', columns: ['workflow', 'created_at', 'id'] },
    { name: 'durable_runs_namespace', columns: ['namespace', 'created_at', 'id'] },
  ],
}

/** Apart from the runs, so that no list reads them and no change of status rewrites them. */
const PAYLOADS: Table = {
  name: 'durable_payloads',
  columns: { run_id: 'key', input: 'text', output: 'text?', error: 'text?' },
  primaryKey: ['run_id'],
  indexes: [],
}

const HISTORY: Table = {
  name: 'durable_history',
  columns: {
    run_id: 'key',
    generation: 'integer',
    seq: 'integer',
    kind: 'key',
    name: 'key',
    called_after: 'integer',
    ordinal: 'integer?',
    status: 'key',
    attempts: 'integer',
    output: 'text?',
    error: 'text?',
    token: 'bigint',
    duration_ms: 'bigint',
    started_at: 'bigint',
    ended_at: 'bigint',
  },
  primaryKey: ['run_id', 'generation', 'seq'],
  indexes: [],
}

const WAITS: Table = {
  name: 'durable_waits',
  columns: {
    registration: 'serial',
    run_id: 'key',
    seq: 'integer',
    kind: 'key',
    name: 'key',
    called_after: 'integer',
    token: 'key?',
    target: 'key?',
    inputs: 'integer?',
    due_at: 'bigint?',
    attempts: 'integer',
    error: 'text?',
    dispatch_generation: 'bigint?',
    dispatch_attempt: 'integer?',
    dispatch_id: 'key?',
    redispatches: 'integer?',
    silence_ms: 'bigint?',
    opened_at: 'bigint',
    served: 'integer',
  },
  indexes: [
    { name: 'durable_waits_run', columns: ['run_id', 'seq'], unique: true },
    {
      name: 'durable_waits_token',
      columns: ['token', 'registration'],
      where: 'token is not null and served = 0',
    },
  ],
}

const INBOX: Table = {
  name: 'durable_inbox',
  columns: {
    run_id: 'key',
    no: 'bigint',
    kind: 'key',
    seq: 'integer',
    received_at: 'bigint',
    signal_id: 'key?',
    token: 'key?',
    payload: 'text?',
    child_id: 'key?',
    child_index: 'integer?',
    child_event: 'key?',
    generation: 'bigint?',
    attempt: 'integer?',
    dispatch_id: 'key?',
    result_status: 'key?',
  },
  primaryKey: ['run_id', 'no'],
  indexes: [
    {
      name: 'durable_inbox_signal',
      columns: ['token', 'signal_id'],
      where: 'token is not null',
    },
  ],
}

/** Signals that nobody has waited for yet. */
const SIGNALS: Table = {
  name: 'durable_signals',
  columns: {
    registration: 'serial',
    token: 'key',
    signal_id: 'key',
    payload: 'text',
    received_at: 'bigint',
  },
  indexes: [
    { name: 'durable_signals_token', columns: ['token', 'signal_id'], unique: true },
    { name: 'durable_signals_oldest', columns: ['token', 'received_at', 'registration'] },
  ],
}

/**
 * `lost`: others have taken its runs over, or are about to. `had_suspect`: it executed a suspect when it was found lost.
 * `counted`: what it loses counts as recoveries.
 */
const WORKERS: Table = {
  name: 'durable_workers',
  columns: {
    instance: 'key',
    name: 'key',
    lease_ms: 'bigint',
    lease_until: 'bigint',
    lost: 'integer',
    had_suspect: 'integer',
    counted: 'integer',
    descriptor: 'text',
    started_at: 'bigint',
  },
  primaryKey: ['instance'],
  indexes: [],
}

/** With the run's time of creation, so that the runs of a tag are listed by key. */
const TAGS: Table = {
  name: 'durable_tags',
  columns: { tag: 'key', created_at: 'bigint', run_id: 'key' },
  primaryKey: ['tag', 'created_at', 'run_id'],
  indexes: [{ name: 'durable_tags_run', columns: ['run_id'] }],
}

/** Values as JSON, with the run's time of creation as in the table of tags. */
const ATTRIBUTES: Table = {
  name: 'durable_attributes',
  columns: { name: 'key', value: 'key', created_at: 'bigint', run_id: 'key' },
  primaryKey: ['name', 'value', 'created_at', 'run_id'],
  indexes: [{ name: 'durable_attributes_run', columns: ['run_id', 'name'], unique: true }],
}

/** Numbers of the whole installation: `clock_offset`, in ms. A missing row counts as 0. */
const META: Table = {
  name: 'durable_meta',
  columns: { name: 'key', value: 'bigint' },
  primaryKey: ['name'],
  indexes: [],
}

/** The tables of each version of the schema, by version. */
export const TABLES_OF_VERSION: ReadonlyMap<number, readonly Table[]> = new Map([
  [1, [RUNS, PAYLOADS, HISTORY, WAITS, INBOX, SIGNALS, WORKERS, TAGS, ATTRIBUTES, META]],
])

/** The version that this package reads and writes. */
export const SCHEMA_VERSION = 1

import type {
  HandledRun,
  ParentLink,
  RunPhase,
  RunPriority,
  RunRow,
  RunStatus,
} from '../../core/run.ts'
import type { Value } from './dialect.ts'

/** A row of `durable_runs`. */
export interface RunColumns {
  id: string
  workflow: string
  version: string
  claim_key: string
  namespace: string
  origin: string | null
  status: RunStatus
  phase: RunPhase
  priority: RunPriority
  due_at: number | null
  owner: string | null
  token: number
  recovery_attempts: number
  parked_at: number | null
  inbox_seq: number
  wake_seq: number | null
  parent_id: string | null
  parent_seq: number | null
  parent_index: number | null
  parent_awaited: number | null
  parent_fail_fast: number | null
  handles_id: string | null
  handles_as: HandledRun['as'] | null
  /** A JSON array; null = empty. */
  route_chain: string | null
  handoffs: number
  deadline_at: number | null
  created_by: string
  format: number
  error_code: string | null
  created_at: number
  started_at: number | null
  updated_at: number
  ended_at: number | null
}

const CHANGING = [
  'claim_key',
  'status',
  'phase',
  'priority',
  'due_at',
  'owner',
  'token',
  'recovery_attempts',
  'parked_at',
  'inbox_seq',
  'wake_seq',
  'handoffs',
  'deadline_at',
  'error_code',
  'started_at',
  'updated_at',
  'ended_at',
] as const satisfies readonly (keyof RunColumns)[]

const FIXED = [
  'id',
  'workflow',
  'version',
  'namespace',
  'origin',
  'parent_id',
  'parent_seq',
  'parent_index',
  'parent_awaited',
  'parent_fail_fast',
  'handles_id',
  'handles_as',
  'route_chain',
  'created_by',
  'format',
  'created_at',
] as const satisfies readonly (keyof RunColumns)[]

const COLUMNS = [...CHANGING, ...FIXED]

/** The columns that make a `RunColumns`, for a select. */
export function runColumns(alias: string): string {
  return COLUMNS.map((column) => `${alias}.${column}`).join(', ')
}

/** Values for `INSERT_RUN`: {@link insertValues}. */
export const INSERT_RUN = `insert into durable_runs (${COLUMNS.join(', ')}) values (${COLUMNS.map(() => '?').join(', ')})`

/** Values for `UPDATE_RUN`: {@link updateValues}. */
export const UPDATE_RUN = `update durable_runs set ${CHANGING.map((column) => `${column} = ?`).join(', ')} where id = ?`

export function insertValues(row: RunRow): Value[] {
  const columns = toColumns(row)
  return COLUMNS.map((column) => columns[column])
}

export function updateValues(row: RunRow): Value[] {
  const columns = toColumns(row)
  const values: Value[] = CHANGING.map((column) => columns[column])
  values.push(row.id)
  return values
}

export function toRun(columns: RunColumns): RunRow {
  return {
    id: columns.id,
    workflow: columns.workflow,
    version: columns.version,
    claimKey: columns.claim_key,
    namespace: columns.namespace,
    origin: columns.origin,
    status: columns.status,
    phase: columns.phase,
    priority: columns.priority,
    dueAt: columns.due_at,
    owner: columns.owner,
    token: columns.token,
    recoveryAttempts: columns.recovery_attempts,
    parkedAt: columns.parked_at,
    inboxSeq: columns.inbox_seq,
    wakeSeq: columns.wake_seq,
    parent: toParent(columns),
    handles: toHandled(columns),
    routeChain: columns.route_chain === null ? [] : (JSON.parse(columns.route_chain) as string[]),
    handoffs: columns.handoffs,
    deadlineAt: columns.deadline_at,
    createdBy: columns.created_by,
    format: columns.format,
    errorCode: columns.error_code,
    createdAt: columns.created_at,
    startedAt: columns.started_at,
    updatedAt: columns.updated_at,
    endedAt: columns.ended_at,
  }
}

function toParent(columns: RunColumns): ParentLink | null {
  if (columns.parent_id === null) return null
  return {
    runId: columns.parent_id,
    seq: columns.parent_seq ?? 0,
    index: columns.parent_index ?? 0,
    awaited: columns.parent_awaited === 1,
    failFast: columns.parent_fail_fast === 1,
  }
}

function toHandled({ handles_id: runId, handles_as: as }: RunColumns): HandledRun | null {
  return runId === null || as === null ? null : { runId, as }
}

function toColumns(row: RunRow): RunColumns {
  const { parent } = row
  return {
    id: row.id,
    workflow: row.workflow,
    version: row.version,
    claim_key: row.claimKey,
    namespace: row.namespace,
    origin: row.origin,
    status: row.status,
    phase: row.phase,
    priority: row.priority,
    due_at: row.dueAt,
    owner: row.owner,
    token: row.token,
    recovery_attempts: row.recoveryAttempts,
    parked_at: row.parkedAt,
    inbox_seq: row.inboxSeq,
    wake_seq: row.wakeSeq,
    parent_id: parent === null ? null : parent.runId,
    parent_seq: parent === null ? null : parent.seq,
    parent_index: parent === null ? null : parent.index,
    parent_awaited: parent === null ? null : Number(parent.awaited),
    parent_fail_fast: parent === null ? null : Number(parent.failFast),
    handles_id: row.handles === null ? null : row.handles.runId,
    handles_as: row.handles === null ? null : row.handles.as,
    route_chain: row.routeChain.length === 0 ? null : JSON.stringify(row.routeChain),
    handoffs: row.handoffs,
    deadline_at: row.deadlineAt,
    created_by: row.createdBy,
    format: row.format,
    error_code: row.errorCode,
    created_at: row.createdAt,
    started_at: row.startedAt,
    updated_at: row.updatedAt,
    ended_at: row.endedAt,
  }
}

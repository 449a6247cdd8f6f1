import { type NewRun, RUN_FORMAT } from '../../../core/run.ts'
import type { Value } from '../dialect.ts'
import type { FusedPlan } from './fused_plan.ts'
import type { StatementParts } from './statement_parts.ts'

/** What is sent of a run that is inserted, in the order of the arrays. */
const COLUMNS = {
  id: 'text',
  workflow: 'text',
  version: 'text',
  claim_key: 'text',
  namespace: 'text',
  origin: 'text',
  priority: 'integer',
  created_by: 'text',
  input: 'text',
  parent_id: 'text',
  parent_seq: 'integer',
  parent_index: 'integer',
  parent_awaited: 'integer',
  parent_fail_fast: 'integer',
  timeout_ms: 'bigint',
} as const
type Column = keyof typeof COLUMNS

const NAMES = Object.keys(COLUMNS) as Column[]
const ARRAYS = Object.values(COLUMNS)
  .map((type) => `?::${type}[]`)
  .join(', ')
const COPIED = NAMES.filter((name) => name !== 'input' && name !== 'timeout_ms')
const INSERTED = `${COPIED.join(', ')}, phase, recovery_attempts, handoffs, inbox_seq, format, created_at, updated_at, deadline_at,
  status, due_at, owner, token, started_at`
const COMMON = `${COPIED.map((name) => `u.${name}`).join(', ')}, 'body', 0, 0, 0, ${RUN_FORMAT}, clock.at, clock.at,
  clock.at + u.timeout_ms`

/**
 * Runs that were asked for from outside; an id that is taken is left alone. After the locks, so that two batches which
 * need the same of both never wait for each other. A run that exists has its payloads.
 */
export function start(
  parts: StatementParts,
  { starts, isAfterLocks }: { starts: FusedPlan['starts']; isAfterLocks: boolean }
): void {
  parts.add(
    `start as materialized (select * from unnest(${ARRAYS}, ?::text[]) as u (${NAMES.join(', ')}, lease_to))`,
    ...arraysOf(starts.map(({ run }) => run)),
    starts.map(({ leaseTo }) => leaseTo)
  )
  parts.add(`started as (
    insert into durable_runs (${INSERTED})
    select ${COMMON}, case when u.lease_to is null then 'pending' else 'running' end,
      case when u.lease_to is null then clock.at end, u.lease_to, case when u.lease_to is null then 0 else 1 end,
      case when u.lease_to is not null then clock.at end
    from start u cross join clock ${isAfterLocks ? 'where (select count(*) from held) >= 0' : ''}
    on conflict (id) do nothing returning id)`)
  parts.add(`started_payloads as (
    insert into durable_payloads (run_id, input) select u.id, u.input from start u
    where (select count(*) from started) >= 0 on conflict (run_id) do nothing)`)
}

/** Runs that turns have started; an id that is taken fails the whole statement. */
export function startChildren(parts: StatementParts, children: FusedPlan['children']): void {
  parts.add(
    `child as materialized (
      select u.* from unnest(${ARRAYS}, ?::integer[]) as u (${NAMES.join(', ')}, turn)
      cross join accepted where accepted.flags[u.turn])`,
    ...arraysOf(children.map(({ run }) => run)),
    children.map(({ turn }) => turn)
  )
  parts.add(`born as (
    insert into durable_runs (${INSERTED})
    select ${COMMON}, 'pending', clock.at, null, 0, null from child u cross join clock returning id)`)
  parts.add(`born_payloads as (
    insert into durable_payloads (run_id, input) select u.id, u.input from child u)`)
}

/** Tags of the runs that were inserted. */
export function tag(
  parts: StatementParts,
  { starts, children }: Pick<FusedPlan, 'starts' | 'children'>
): void {
  const tags = [...starts, ...children].flatMap(({ run }) =>
    [...new Set(run.tags)].map((name) => ({ name, id: run.id }))
  )
  if (tags.length === 0) return
  const inserted = [
    ...(starts.length > 0 ? ['select id from started'] : []),
    ...(children.length > 0 ? ['select id from born'] : []),
  ]
  parts.add(
    `tagged as (
      insert into durable_tags (tag, created_at, run_id)
      select u.tag, clock.at, u.id from unnest(?::text[], ?::text[]) as u (tag, id)
      join (${inserted.join(' union all ')}) i on i.id = u.id cross join clock)`,
    tags.map(({ name }) => name),
    tags.map(({ id }) => id)
  )
}

function arraysOf(runs: readonly NewRun[]): (readonly Value[])[] {
  const rows = runs.map((run): Record<Column, Value> => {
    const { parent } = run
    return {
      id: run.id,
      workflow: run.workflow,
      version: run.version,
      claim_key: run.claimKey,
      namespace: run.namespace,
      origin: run.origin,
      priority: run.priority,
      created_by: run.createdBy,
      input: run.input,
      parent_id: parent === null ? null : parent.runId,
      parent_seq: parent === null ? null : parent.seq,
      parent_index: parent === null ? null : parent.index,
      parent_awaited: parent === null ? null : Number(parent.awaited),
      parent_fail_fast: parent === null ? null : Number(parent.failFast),
      timeout_ms: run.timeoutMs ?? null,
    }
  })
  return NAMES.map((name) => rows.map((row) => row[name]))
}

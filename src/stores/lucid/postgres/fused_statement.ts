import type { RunStatus } from '../../../core/run.ts'
import { FRAGMENTS } from './fragments.ts'
import { type Audience, newsPart, notification } from './fused_news.ts'
import { closeWaits, openWaits, record } from './fused_operations.ts'
import { type FusedPlan, shapeOf, type TurnShape } from './fused_plan.ts'
import { start, startChildren, tag } from './fused_runs.ts'
import { change, clear, lock, pay, take, wake } from './fused_turns.ts'
import type { PgStatement } from './session.ts'
import { StatementParts } from './statement_parts.ts'

/** A row of the answer: one per run of a turn and per parent that was told, or a single one without an id. */
export interface FusedRow {
  now: number
  /** Ids of the runs that were started; null = all that were to be. */
  started: string[] | null
  id?: string
  /** `undecided`: it needs more than the locked rows. `told`: no turn of this batch. */
  outcome: 'accepted' | 'undecided' | 'lost' | 'told'
  /** After the statement. */
  status: RunStatus
  /** Null also where the statement has not changed the row. */
  due_at: number | null
  inbox_seq: number
  claim_key: string
  is_told: boolean
}

/**
 * The one statement of a batch: locks the rows in order of id, with the token checked, and writes for those that it
 * accepted only. It reads nothing but what it locked, whose state is that under the lock, and what never changes: all
 * else is as old as the statement's beginning, which a wait for a lock may have left far behind. Only the parts that the
 * batch needs are in it, so that a server prepares a handful of such statements.
 */
export function fusedStatement(plan: FusedPlan, audience: Audience): PgStatement {
  const { turns, starts, children, records, opened, closed } = plan
  const shape = shapeOf(turns)
  const parts = new StatementParts()
  parts.add(`clock as materialized (select ${FRAGMENTS.now} as at)`)
  if (turns.length > 0) lock(parts, { turns, shape, audience })
  if (shape.wakes) wake(parts)
  if (shape.changes) change(parts, shape)
  if (shape.ends || turns.some(({ end }) => end.kind === 'block')) pay(parts)
  if (shape.ends) clear(parts)
  if (records.length > 0) record(parts, records)
  if (opened.length > 0) openWaits(parts, opened)
  if (closed.length > 0) closeWaits(parts, closed)
  if (shape.ends || turns.some(({ seen }) => seen > 0)) take(parts, shape)
  if (starts.length > 0) start(parts, { starts, isAfterLocks: turns.length > 0 })
  if (children.length > 0) startChildren(parts, children)
  tag(parts, plan)
  if (shape.changes) newsPart(parts, audience)
  const told = notification(plan, { audience, shape })
  const started = starts.length > 0 ? STARTED : 'null'
  const common = `(select at from clock) as now, ${started} as started, ${told.sql} as notified`
  return parts.build(`select ${common}${answerOf(turns.length > 0, shape)}`, told.values)
}

/** Every row of the answer has it: named only where some are missing. */
const STARTED = `(select case when count(*) < (select count(*) from start) then coalesce(array_agg(id), '{}') end
  from started)`

function answerOf(hasTurns: boolean, { changes }: TurnShape): string {
  if (!hasTurns) return ''
  const outcome = `case when h.k is null then 'told' when h.is_accepted then 'accepted'
    when h.is_current then 'undecided' else 'lost' end as outcome`
  return changes
    ? `, h.id, ${outcome}, h.claim_key, h.status, h.inbox_seq, h.is_told,
        case when h.is_changed then h.due_at end as due_at from changed h`
    : `, h.id, ${outcome}, h.claim_key, h.row_status as status, h.inbox_seq, false as is_told,
        null::bigint as due_at from held h`
}

import type { FusedPlan, TurnShape } from './fused_plan.ts'
import { MAX_BYTES } from './notices.ts'
import type { PgStatement } from './session.ts'
import type { StatementParts } from './statement_parts.ts'

/** What the statement needs to know to tell other processes. */
export interface Audience {
  channel: string
  /** Marks what this process sends. */
  from: string
  /** Claim keys of which this process takes what becomes due. */
  taking: readonly string[]
  /** Instances of this process. */
  instances: readonly string[]
  /** Whether another process may wait for the end of a run. */
  mayBeWaitedFor: (runId: string) => boolean
}

/** `news`: what of the changed runs concerns others. */
export function newsPart(parts: StatementParts, { taking, instances }: Audience): void {
  parts.add(
    `news as materialized (
      select array_agg(distinct c.claim_key)
          filter (where c.is_changed and c.due_at <= clock.at and c.claim_key <> all(?::text[])) as due,
        array_agg(c.id) filter (where c.is_told and c.status = 'running' and c.owner <> all(?::text[])) as inbox,
        array_agg(c.id) filter (where c.is_awaited) as ended
      from changed c cross join clock)`,
    taking,
    instances
  )
}

/** At most one notification, and none when nothing concerns anybody else: an expression of the last select. */
export function notification(
  { starts, children }: FusedPlan,
  { audience, shape }: { audience: Audience; shape: TurnShape }
): PgStatement {
  const { channel, from, taking } = audience
  const due = [...starts.filter(({ leaseTo }) => leaseTo === null), ...children]
  const keys = [...new Set(due.map(({ run }) => run.claimKey))].filter(
    (key) => !taking.includes(key)
  )
  if (shape.changes) return { sql: NOTIFY_NEWS, values: [channel, from, keys] }
  if (keys.length === 0) return { sql: 'null', values: [] }
  const values = [channel, JSON.stringify({ from, due: keys })]
  return { sql: '(select pg_notify(?, ?)::text)', values }
}

const NOTIFY_NEWS = `(select pg_notify(b.channel, case when octet_length(b.body) < ${MAX_BYTES} then b.body
      else json_build_object('from', b.sender, 'isCut', true)::text end)::text
    from (
      select x.channel, x.sender, json_build_object('from', x.sender, 'due', n.due, 'new', x.keys, 'inbox', n.inbox,
        'ended', n.ended)::text as body
      from news n cross join (select ?::text as channel, ?::text as sender, ?::text[] as keys) x
      where n.due is not null or n.inbox is not null or n.ended is not null or x.keys <> '{}') b)`

import type { Audience } from './fused_news.ts'
import { type FusedEnd, type FusedTurn, isTerminalEnd, type TurnShape } from './fused_plan.ts'
import type { StatementParts } from './statement_parts.ts'

const ENDED = `('completed', 'failed')`

/** The columns of a run's row that decide. */
const ROW = `r.token as row_token, r.status as row_status,
  r.phase = 'body' and left(r.claim_key, 1) <> ' ' and r.parked_at is null as is_ordinary, r.due_at as row_due_at, r.error_code as row_error_code, r.owner,
  r.inbox_seq, r.wake_seq, r.claim_key, r.parent_id, r.parent_seq, r.parent_index, r.parent_awaited, r.parent_fail_fast`

/**
 * `held`: the rows of the turns, and of the parents that one of them may wake, locked one after the other in order of
 * id; each with the turn it is of, numbered from 1. Which of them are accepted is decided here: the token fits, and the
 * rest can be decided too. `accepted`: the same as an array by number.
 */
export function lock(
  parts: StatementParts,
  params: { turns: readonly FusedTurn[]; shape: TurnShape; audience: Audience }
): void {
  const { turns, shape, audience } = params
  const columns: Record<
    string,
    { type: string; values: readonly (string | number | boolean | null)[] }
  > = {
    id: { type: 'text', values: turns.map(({ runId }) => runId) },
    token: { type: 'bigint', values: turns.map(({ token }) => token) },
    at: { type: 'integer', values: turns.map(({ at }) => at) },
    seen: { type: 'bigint', values: turns.map(({ seen }) => seen) },
    gives_back: {
      type: 'boolean',
      values: turns.map(({ closes, end }) => closes || isTerminalEnd(end)),
    },
    ...(shape.changes ? endColumns(turns, audience) : {}),
  }
  const names = Object.keys(columns)
  const arrays = Object.values(columns).map(({ type }) => `?::${type}[]`)
  parts.add(
    `turn as materialized (select * from unnest(${arrays.join(', ')}) with ordinality as t (${names.join(', ')}, k))`,
    ...Object.values(columns).map(({ values }) => values)
  )
  if (shape.wakes) addParents(parts, names.length)
  const forgetsError = shape.changes
    ? `and not (w.status = 'suspended' and r.row_error_code is not null)`
    : ''
  parts.add(`held as materialized (
    select w.*, r.*, w.k is not null and coalesce(r.row_token = w.token and r.row_status = 'running', false) as is_current,
      w.k is not null and coalesce(r.row_token = w.token and r.row_status = 'running'
        and r.is_ordinary and not (w.gives_back and r.inbox_seq > w.seen) ${forgetsError}, false) as is_accepted
    from (select * from ${shape.wakes ? 'wanted' : 'turn'} order by id collate "C") w
    left join lateral (select ${ROW} from durable_runs r where r.id = w.id for no key update) r on true)`)
  parts.add(`accepted as materialized (
    select array_agg(is_accepted order by k) as flags from held where k is not null)`)
}

/** What a turn's end leaves in the row; the statement fills in the instants. As `ended` of core/transition does. */
function endColumns(turns: readonly FusedTurn[], { mayBeWaitedFor }: Audience) {
  const ends = turns.map(({ end }) => endOf(end))
  return {
    status: { type: 'text', values: ends.map(({ status }) => status) },
    needs: { type: 'integer', values: ends.map(({ needs }) => needs ?? null) },
    due_at: { type: 'bigint', values: ends.map(({ dueAt }) => dueAt ?? null) },
    due_in: { type: 'bigint', values: ends.map(({ dueIn }) => dueIn ?? null) },
    error_code: { type: 'text', values: ends.map(({ errorCode }) => errorCode ?? null) },
    output: { type: 'text', values: ends.map(({ output }) => output ?? null) },
    error: { type: 'text', values: ends.map(({ error }) => error ?? null) },
    is_awaited: {
      type: 'boolean',
      values: turns.map(({ runId, end }) => isTerminalEnd(end) && mayBeWaitedFor(runId)),
    },
  }
}

interface EndState {
  status: string
  needs?: number | null
  dueAt?: number | null
  dueIn?: number | null
  errorCode?: string
  output?: string
  error?: string
}

function endOf(end: FusedEnd): EndState {
  switch (end.kind) {
    case 'continue':
      return { status: 'running' }
    case 'suspend':
      return { status: 'suspended', needs: end.needs, dueAt: end.dueAt, dueIn: end.dueIn }
    case 'release':
      return { status: 'suspended', dueIn: 0 }
    case 'complete':
      return { status: 'completed', output: end.output }
    case 'fail':
      return { status: 'failed', error: end.error, errorCode: end.errorCode }
    case 'block':
      return { status: 'blocked', error: end.error, errorCode: end.errorCode, dueIn: end.retryIn }
  }
}

/** Whose child a run is never changes, and may be read without its lock. */
function addParents(parts: StatementParts, columns: number): void {
  const nothing = Array.from({ length: columns }, () => 'null').join(', ')
  parts.add(`wanted as materialized (
    select * from turn
    union all
    select p.id, ${nothing} from (
      select distinct c.parent_id as id from turn t join durable_runs c on c.id = t.id
      where t.status in ${ENDED} and c.parent_awaited = 1) p
    where p.id <> all(array(select id from turn)))`)
}

/** `woken`: the entries that ended children send, numbered by parent. `told`: what they come to for each parent. */
export function wake(parts: StatementParts): void {
  parts.add(`woken as materialized (
    select p.id, c.parent_seq as seq, c.parent_index as index, c.id as child_id, c.status as event,
      p.inbox_seq + row_number() over (partition by p.id order by c.at) as no,
      (not p.is_accepted or p.at < c.at) as is_after,
      (c.status = 'failed' and c.parent_fail_fast = 1) as is_urgent,
      (p.is_accepted and p.status in ${ENDED}) as is_cleared
    from held c join held p on p.id = c.parent_id
    where c.is_accepted and c.status in ${ENDED} and c.parent_awaited = 1
      and p.row_status in ('pending', 'running', 'suspended', 'blocked')
      and not (p.is_accepted and p.status in ${ENDED} and p.at < c.at))`)
  parts.add(`told as materialized (
    select id, count(*) as entries, count(*) filter (where not is_after) as before,
      count(*) filter (where is_after) as after, coalesce(bool_or(is_urgent and is_after), false) as is_urgent
    from woken group by id)`)
  parts.add(`sent as (
    insert into durable_inbox (run_id, no, kind, seq, received_at, child_id, child_index, child_event)
    select w.id, w.no, 'child', w.seq, (select at from clock), w.child_id, w.index, w.event
    from woken w where not w.is_cleared)`)
}

/** `changed`: what the rows become by their own turn and all that was sent to them, in the order of the batch. */
export function change(parts: StatementParts, { wakes }: TurnShape): void {
  const of = (expression: string, nothing: string) => (wakes ? expression : nothing)
  parts.add(`settled as materialized (
    select h.id, h.k, h.claim_key, h.is_current, h.is_accepted, own.is_own, ${of('told.id is not null', 'false')} as is_told,
      own.is_own and h.is_awaited and h.parent_id is null as is_awaited, h.output, h.error, h.seen,
      case when own.is_own then h.status else h.row_status end as status,
      case when not own.is_own then h.owner end as owner,
      case when own.is_own then h.error_code else h.row_error_code end as error_code,
      h.inbox_seq as old_inbox_seq, h.inbox_seq + ${of('coalesce(told.entries, 0)', '0')} as inbox_seq,
      case when own.is_own then h.seen + h.needs else h.wake_seq end as wake_seq,
      case when not own.is_own then h.row_due_at
        when h.status = 'blocked' then clock.at + h.due_in
        when h.status <> 'suspended' then null
        when h.inbox_seq + ${of('coalesce(told.before, 0)', '0')} > h.seen then clock.at
        else least(h.due_at, clock.at + h.due_in) end as due_at,
      ${of('coalesce(told.after, 0) > 0', 'false')} as has_later,
      ${of('coalesce(told.is_urgent, false)', 'false')} as is_urgent
    from held h cross join clock
      cross join lateral (select h.is_accepted and h.status <> 'running' as is_own) own
      ${of('left join told on told.id = h.id', '')})`)
  parts.add(`changed as materialized (
    select s.id, s.k, s.claim_key, s.is_current, s.is_accepted, s.is_own, s.is_told, s.is_own or s.is_told as is_changed,
      s.is_awaited, s.output, s.error, s.seen, s.status, s.owner, s.error_code, s.old_inbox_seq, s.inbox_seq, s.wake_seq,
      case when s.status = 'suspended' and s.has_later
          and (s.is_urgent or s.wake_seq is null or s.inbox_seq >= s.wake_seq)
        then least(s.due_at, clock.at) else s.due_at end as due_at
    from settled s cross join clock)`)
  parts.add(`updated as (
    update durable_runs r set status = c.status, due_at = c.due_at, owner = c.owner, inbox_seq = c.inbox_seq,
      wake_seq = c.wake_seq, error_code = c.error_code,
      updated_at = case when c.is_own then clock.at else r.updated_at end,
      ended_at = case when c.status in ${ENDED} then clock.at else r.ended_at end
    from changed c cross join clock where r.id = c.id and c.is_changed)`)
}

/** Outputs and errors of runs that end, errors of those that are blocked. */
export function pay(parts: StatementParts): void {
  parts.add(`paid as (
    update durable_payloads p set output = case when c.status = 'completed' then c.output else p.output end, error = c.error
    from changed c where p.run_id = c.id and c.is_own and c.status in ('completed', 'failed', 'blocked'))`)
}

/** Nothing waits any more in a run that has ended. */
export function clear(parts: StatementParts): void {
  parts.add(`cleared as (
    delete from durable_waits w using changed c where w.run_id = c.id and c.is_own and c.status in ${ENDED})`)
}

/** Deletes the inbox entries that were taken, and all of a run that has ended. */
export function take(parts: StatementParts, { changes }: TurnShape): void {
  const [from, had, upTo] = changes
    ? [
        'changed',
        'h.old_inbox_seq',
        `case when h.is_own and h.status in ${ENDED} then h.old_inbox_seq else h.seen end`,
      ]
    : ['held', 'h.inbox_seq', 'h.seen']
  parts.add(`taken as (
    delete from durable_inbox i using ${from} h
    where h.is_accepted and ${had} > 0 and i.run_id = h.id and i.no <= ${upTo})`)
}

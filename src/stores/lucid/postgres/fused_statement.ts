import { type NewRun, RUN_FORMAT, type RunStatus } from '../../../core/run.ts'
import type { TurnEnd } from '../../../core/change_set.ts'
import type { Value } from '../dialect.ts'
import { FRAGMENTS } from './fragments.ts'
import { type FusedPlan, type FusedTurn, isTerminalEnd } from './fused_plan.ts'
import { MAX_BYTES } from './notices.ts'
import type { PgStatement } from './session.ts'

/** What the statement needs to know to tell other processes. */
export interface Audience {
  channel: string
  from: string
  /** Claim keys of which this process takes what becomes due. */
  taking: readonly string[]
  /** Instances of this process. */
  instances: readonly string[]
  /** Whether another process may wait for the end of a run. */
  mayBeWaitedFor: (runId: string) => boolean
}

/** A row of the answer: one per run of a turn and per parent that was told, or a single one without an id. */
export interface FusedRow {
  now: number
  /** Ids of the runs that were started; null = none was. */
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
  const statement = new FusedStatement(plan, audience)
  return statement.build()
}

class FusedStatement {
  #parts: string[] = []
  #values: PgStatement['values'][number][] = []
  #plan: FusedPlan
  #audience: Audience
  #hasEnds: boolean
  #hasChanges: boolean
  #hasTurns: boolean

  constructor(plan: FusedPlan, audience: Audience) {
    this.#plan = plan
    this.#audience = audience
    this.#hasTurns = plan.turns.length > 0
    this.#hasEnds = plan.turns.some(({ end }) => isTerminalEnd(end))
    this.#hasChanges = plan.turns.some(({ end }) => end.kind !== 'continue')
  }

  build(): PgStatement {
    const { starts, records, opened, closed, children, turns } = this.#plan
    this.#part(`clock as materialized (select ${FRAGMENTS.now} as at)`)
    if (this.#hasTurns) this.#lock()
    if (this.#hasEnds) this.#wake()
    if (this.#hasChanges) this.#change()
    if (this.#hasEnds) this.#end()
    if (records.length > 0) this.#record()
    if (opened.length > 0) this.#open()
    if (closed.length > 0) this.#close()
    if (this.#hasEnds || turns.some(({ seen }) => seen > 0)) this.#take()
    if (starts.length > 0) this.#start()
    if (children.length > 0) this.#startChildren()
    this.#tag()
    const answer = this.#answer()
    return { sql: `with ${this.#parts.join(',\n')}\n${answer}`, values: this.#values }
  }

  #part(sql: string, ...values: PgStatement['values'][number][]) {
    this.#parts.push(sql)
    this.#values.push(...values)
  }

  /** Own rows and those of the parents of what ends. */
  #lock() {
    const { turns } = this.#plan
    const of = <T>(value: (turn: FusedTurn) => T) => turns.map(value)
    const common = [
      of(({ runId }) => runId),
      of(({ token }) => token),
      of(({ at }) => at),
      of(({ seen }) => seen),
      of(({ closes, end }) => closes || isTerminalEnd(end)),
    ]
    if (!this.#hasChanges) {
      this.#part(
        `turn as materialized (select * from unnest(?::text[], ?::bigint[], ?::integer[], ?::bigint[], ?::boolean[])
          as t (id, token, at, seen, gives_back))`,
        ...common
      )
    } else {
      const ends = turns.map(({ end }) => endColumns(end))
      const column = <K extends keyof EndColumns>(name: K) => ends.map((end) => end[name])
      this.#part(
        `turn as materialized (select * from unnest(?::text[], ?::bigint[], ?::integer[], ?::bigint[], ?::boolean[],
          ?::text[], ?::integer[], ?::bigint[], ?::bigint[], ?::text[], ?::text[], ?::text[], ?::boolean[])
          as t (id, token, at, seen, gives_back, status, needs, due_at, due_in, error_code, output, error, is_awaited))`,
        ...common,
        column('status'),
        column('needs'),
        column('due_at'),
        column('due_in'),
        column('error_code'),
        column('output'),
        column('error'),
        turns.map(({ runId, end }) => isTerminalEnd(end) && this.#audience.mayBeWaitedFor(runId))
      )
    }
    const parents = this.#hasEnds
      ? `union select c.parent_id from turn t join durable_runs c on c.id = t.id
          where t.status in ('completed', 'failed') and c.parent_awaited = 1`
      : ''
    const forgetsError = this.#hasChanges
      ? `and not (t.status = 'suspended' and h.error_code is not null)`
      : ''
    this.#part(`held as materialized (
      select r.id, r.token, r.status, r.due_at, r.owner, r.inbox_seq, r.wake_seq, r.error_code, r.claim_key,
        r.parent_id, r.parent_seq, r.parent_index, r.parent_awaited, r.parent_fail_fast
      from durable_runs r where r.id in (select id from turn ${parents}) order by r.id for no key update)`)
    this.#part(`accepted as materialized (
      select t.*, h.inbox_seq from turn t join held h on h.id = t.id
      where h.token = t.token and h.status = 'running' and not (t.gives_back and h.inbox_seq > t.seen) ${forgetsError})`)
  }

  /** The entries that ended children send to their parents, numbered, and what they come to for each parent. */
  #wake() {
    this.#part(`woken as materialized (
      select h.parent_id as id, h.parent_seq as seq, h.parent_index as index, a.id as child_id, a.status as event,
        p.inbox_seq + row_number() over (partition by p.id order by a.at) as no,
        (own.id is null or own.at < a.at) as is_after,
        (a.status = 'failed' and h.parent_fail_fast = 1) as is_urgent,
        (own.id is not null and own.status in ('completed', 'failed')) as is_cleared
      from accepted a join held h on h.id = a.id and h.parent_awaited = 1
        join held p on p.id = h.parent_id left join accepted own on own.id = p.id
      where a.status in ('completed', 'failed')
        and p.status in ('pending', 'running', 'suspended', 'blocked')
        and not (own.id is not null and own.status in ('completed', 'failed') and own.at < a.at))`)
    this.#part(`told as materialized (
      select id, count(*) as entries, count(*) filter (where not is_after) as before,
        count(*) filter (where is_after) as after, coalesce(bool_or(is_urgent and is_after), false) as is_urgent
      from woken group by id)`)
    this.#part(`sent as (
      insert into durable_inbox (run_id, no, kind, seq, received_at, child_id, child_index, child_event)
      select w.id, w.no, 'child', w.seq, (select at from clock), w.child_id, w.index, w.event
      from woken w where not w.is_cleared)`)
  }

  /** One update per row: the run's own turn and all that was sent to it, in the order of the batch. */
  #change() {
    const [told, entries, before, after, urgent, isTold] = this.#hasEnds
      ? [
          'left join told on told.id = h.id',
          'coalesce(told.entries, 0)',
          'coalesce(told.before, 0)',
          'coalesce(told.after, 0)',
          'coalesce(told.is_urgent, false)',
          'told.id is not null',
        ]
      : ['', '0', '0', '0', 'false', 'false']
    this.#part(`settled as materialized (
      select h.id, h.claim_key, own.id is not null as is_own, ${isTold} as is_told, coalesce(own.is_awaited, false)
          and h.parent_id is null as is_awaited,
        coalesce(own.status, h.status) as status, case when own.id is null then h.owner end as owner,
        case when own.id is null then h.error_code else own.error_code end as error_code,
        h.inbox_seq + ${entries} as inbox_seq,
        case when own.id is null then h.wake_seq else own.seen + own.needs end as wake_seq,
        case when own.id is null then h.due_at
          when own.status = 'blocked' then clock.at + own.due_in
          when own.status <> 'suspended' then null
          when h.inbox_seq + ${before} > own.seen then clock.at
          else least(own.due_at, clock.at + own.due_in) end as due_at,
        ${after} > 0 as has_later, ${urgent} as is_urgent
      from held h cross join clock left join accepted own on own.id = h.id and own.status <> 'running' ${told}
      where own.id is not null or ${isTold})`)
    this.#part(`changed as materialized (
      select s.id, s.claim_key, s.is_own, s.is_told, s.is_awaited, s.status, s.owner, s.error_code, s.inbox_seq, s.wake_seq,
        case when s.status = 'suspended' and s.has_later
            and (s.is_urgent or s.wake_seq is null or s.inbox_seq >= s.wake_seq)
          then least(s.due_at, clock.at) else s.due_at end as due_at
      from settled s cross join clock)`)
    this.#part(`updated as (
      update durable_runs r set status = c.status, due_at = c.due_at, owner = c.owner, inbox_seq = c.inbox_seq,
        wake_seq = c.wake_seq, error_code = c.error_code,
        updated_at = case when c.is_own then clock.at else r.updated_at end,
        ended_at = case when c.status in ('completed', 'failed') then clock.at else r.ended_at end
      from changed c cross join clock where r.id = c.id)`)
    if (this.#plan.turns.some(({ end }) => isTerminalEnd(end) || end.kind === 'block'))
      this.#part(`paid as (
        update durable_payloads p set output = case when a.status = 'completed' then a.output else p.output end,
          error = a.error
        from accepted a where p.run_id = a.id and a.status in ('completed', 'failed', 'blocked'))`)
  }

  #end() {
    this.#part(`cleared as (
      delete from durable_waits w using accepted a
      where w.run_id = a.id and a.status in ('completed', 'failed'))`)
  }

  #record() {
    const { records } = this.#plan
    this.#part(
      `recorded as (
        insert into durable_history (run_id, generation, seq, kind, name, called_after, ordinal, status, attempts, output,
          error, token, duration_ms, started_at, ended_at)
        select u.run_id, 0, u.seq, u.kind, u.name, u.called_after, u.ordinal, u.status, u.attempts, u.output, u.error,
          a.token, u.duration, clock.at - u.duration, clock.at
        from unnest(?::text[], ?::integer[], ?::text[], ?::text[], ?::integer[], ?::integer[], ?::text[], ?::integer[],
          ?::text[], ?::text[], ?::bigint[])
          as u (run_id, seq, kind, name, called_after, ordinal, status, attempts, output, error, duration)
        join accepted a on a.id = u.run_id cross join clock)`,
      records.map(({ runId }) => runId),
      records.map(({ seq }) => seq),
      records.map(({ kind }) => kind),
      records.map(({ name }) => name),
      records.map(({ after }) => after),
      records.map(({ ordinal }) => ordinal),
      records.map(({ status }) => status),
      records.map(({ attempts }) => attempts),
      records.map(({ output }) => output),
      records.map(({ error }) => error),
      records.map(({ durationMs }) => durationMs)
    )
  }

  #open() {
    const { opened } = this.#plan
    this.#part(
      `opened as (
        insert into durable_waits (run_id, seq, kind, name, called_after, token, target, due_at, attempts, error,
          opened_at, served)
        select u.run_id, u.seq, u.kind, u.name, u.called_after, null, u.target,
          coalesce(clock.at + u.due_in, u.due_at), u.attempts, u.error, clock.at, 0
        from unnest(?::text[], ?::integer[], ?::text[], ?::text[], ?::integer[], ?::text[], ?::bigint[], ?::bigint[],
          ?::integer[], ?::text[])
          as u (run_id, seq, kind, name, called_after, target, due_in, due_at, attempts, error)
        join accepted a on a.id = u.run_id cross join clock
        on conflict (run_id, seq) do update set kind = excluded.kind, name = excluded.name,
          called_after = excluded.called_after, token = excluded.token, target = excluded.target,
          due_at = excluded.due_at, attempts = excluded.attempts, error = excluded.error,
          opened_at = excluded.opened_at, served = 0)`,
      opened.map(({ runId }) => runId),
      opened.map(({ seq }) => seq),
      opened.map(({ kind }) => kind),
      opened.map(({ name }) => name),
      opened.map(({ after }) => after),
      opened.map(({ target }) => target),
      opened.map(({ dueIn }) => dueIn),
      opened.map(({ dueAt }) => dueAt),
      opened.map(({ attempts }) => attempts),
      opened.map(({ error }) => error)
    )
  }

  #close() {
    const { closed } = this.#plan
    this.#part(
      `closed as (
        delete from durable_waits w using unnest(?::text[], ?::integer[]) as u (run_id, seq), accepted a
        where a.id = u.run_id and w.run_id = u.run_id and w.seq = u.seq)`,
      closed.map(({ runId }) => runId),
      closed.map(({ seq }) => seq)
    )
  }

  #take() {
    const upTo = this.#hasEnds
      ? `case when a.status in ('completed', 'failed') then a.inbox_seq else a.seen end`
      : 'a.seen'
    this.#part(`taken as (
      delete from durable_inbox i using accepted a
      where a.inbox_seq > 0 and i.run_id = a.id and i.no <= ${upTo})`)
  }

  /** After the locks: two batches that take the same of both never wait for each other. */
  #start() {
    const { starts } = this.#plan
    const afterLocks = this.#hasTurns ? 'where (select count(*) from held) >= 0' : ''
    this.#part(
      `start as materialized (select * from unnest(${RUN_ARRAYS}, ?::text[]) as u (${RUN_NAMES}, lease_to))`,
      ...runArrays(starts.map(({ run }) => run)),
      starts.map(({ leaseTo }) => leaseTo)
    )
    this.#part(`started as (
      insert into durable_runs (${INSERTED}, started_at)
      select ${SELECTED}, case when u.lease_to is null then 'pending' else 'running' end,
        case when u.lease_to is null then clock.at end, u.lease_to, case when u.lease_to is null then 0 else 1 end,
        case when u.lease_to is not null then clock.at end
      from start u cross join clock ${afterLocks}
      on conflict (id) do nothing returning id)`)
    this.#part(`started_payloads as (
      insert into durable_payloads (run_id, input) select u.id, u.input from started join start u on u.id = started.id)`)
  }

  #startChildren() {
    const { children } = this.#plan
    this.#part(
      `child as materialized (select u.* from unnest(${RUN_ARRAYS}, ?::text[]) as u (${RUN_NAMES}, started_by)
        join accepted a on a.id = u.started_by)`,
      ...runArrays(children.map(({ run }) => run)),
      children.map(({ startedBy }) => startedBy)
    )
    this.#part(`born as (
      insert into durable_runs (${INSERTED})
      select ${SELECTED}, 'pending', clock.at, null, 0 from child u cross join clock returning id)`)
    this.#part(`born_payloads as (
      insert into durable_payloads (run_id, input) select u.id, u.input from child u)`)
  }

  #tag() {
    const { starts, children } = this.#plan
    const tags = [...starts, ...children].flatMap(({ run }) =>
      [...new Set(run.tags)].map((tag) => ({ tag, id: run.id }))
    )
    if (tags.length === 0) return
    const inserted = [
      ...(starts.length > 0 ? ['select id from started'] : []),
      ...(children.length > 0 ? ['select id from born'] : []),
    ]
    this.#part(
      `tagged as (
        insert into durable_tags (tag, created_at, run_id)
        select u.tag, clock.at, u.id from unnest(?::text[], ?::text[]) as u (tag, id)
        join (${inserted.join(' union all ')}) i on i.id = u.id cross join clock)`,
      tags.map(({ tag }) => tag),
      tags.map(({ id }) => id)
    )
  }

  /** One row per run of a turn, and per parent that was told. */
  #answer(): string {
    const started = this.#plan.starts.length > 0 ? '(select array_agg(id) from started)' : 'null'
    const common = `(select at from clock) as now, ${started} as started, ${this.#notification()} as notified`
    if (!this.#hasTurns) return `select ${common}`
    const own = `select t.id, case when a.id is not null then 'accepted'
        when h.token = t.token and h.status = 'running' then 'undecided' else 'lost' end as outcome,
        h.claim_key, h.inbox_seq, h.status, null::bigint as due_at, false as is_told
      from turn t left join held h on h.id = t.id left join accepted a on a.id = t.id`
    if (!this.#hasChanges) return `select ${common}, o.* from (${own}) o`
    const others = `union all select h.id, 'told', h.claim_key, h.inbox_seq, h.status, null, false
      from held h where not exists (select 1 from turn t where t.id = h.id)`
    return `select ${common}, o.id, o.outcome, o.claim_key, coalesce(c.inbox_seq, o.inbox_seq) as inbox_seq,
        coalesce(c.status, o.status) as status, c.due_at, coalesce(c.is_told, false) as is_told
      from (${own} ${this.#hasEnds ? others : ''}) o left join changed c on c.id = o.id`
  }

  /** At most one notification, and none when nothing concerns anybody else. An expression of the last select. */
  #notification(): string {
    const { starts, children } = this.#plan
    const { channel, from, taking, instances } = this.#audience
    const due = [...starts.filter(({ leaseTo }) => leaseTo === null), ...children]
    const keys = [...new Set(due.map(({ run }) => run.claimKey))].filter(
      (key) => !taking.includes(key)
    )
    if (!this.#hasChanges) {
      if (keys.length === 0) return 'null'
      this.#values.push(channel, JSON.stringify({ from, due: keys }))
      return '(select pg_notify(?, ?)::text)'
    }
    this.#part(
      `news as materialized (
        select array_agg(distinct c.claim_key)
            filter (where c.due_at <= clock.at and c.claim_key <> all(?::text[])) as due,
          array_agg(c.id) filter (where c.is_told and c.status = 'running' and c.owner <> all(?::text[])) as inbox,
          array_agg(c.id) filter (where c.is_awaited) as ended
        from changed c cross join clock)`,
      taking,
      instances
    )
    this.#values.push(channel, from, keys)
    return `(select pg_notify(b.channel, case when octet_length(b.body) < ${MAX_BYTES} then b.body
          else json_build_object('from', b.sender, 'isCut', true)::text end)::text
        from (
          select x.channel, x.sender, json_build_object('from', x.sender, 'due', n.due, 'new', x.keys, 'inbox', n.inbox,
            'ended', n.ended)::text as body
          from news n cross join (select ?::text as channel, ?::text as sender, ?::text[] as keys) x
          where n.due is not null or n.inbox is not null or n.ended is not null or x.keys <> '{}') b)`
  }
}

/** The columns of a run that is inserted, in the order of their arrays. */
const RUN_COLUMNS = {
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
} as const
const RUN_NAMES = Object.keys(RUN_COLUMNS).join(', ')
const RUN_ARRAYS = Object.values(RUN_COLUMNS)
  .map((type) => `?::${type}[]`)
  .join(', ')
const COPIED = Object.keys(RUN_COLUMNS).filter((name) => name !== 'input')
const INSERTED = `${COPIED.join(', ')}, phase, recovery_attempts, inbox_seq, format, created_at, updated_at, status,
  due_at, owner, token`
const SELECTED = `${COPIED.map((name) => `u.${name}`).join(', ')}, 'body', 0, 0, ${RUN_FORMAT}, clock.at, clock.at`

function runArrays(runs: readonly NewRun[]): (readonly Value[])[] {
  const rows = runs.map((run): Record<keyof typeof RUN_COLUMNS, Value> => {
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
    }
  })
  const names = Object.keys(RUN_COLUMNS) as (keyof typeof RUN_COLUMNS)[]
  return names.map((name) => rows.map((row) => row[name]))
}

interface EndColumns {
  status: string
  needs: number | null
  due_at: number | null
  due_in: number | null
  error_code: string | null
  output: string | null
  error: string | null
}

/** What a turn's end leaves in the row; the statement fills in the instants. As `ended` of core/transition does. */
function endColumns(end: TurnEnd): EndColumns {
  const nothing = { ...{ needs: null, due_at: null, due_in: null }, error_code: null, output: null }
  const none = { ...nothing, error: null }
  switch (end.kind) {
    case 'continue':
      return { ...none, status: 'running' }
    case 'suspend':
      return { ...none, status: 'suspended', needs: end.needs, due_at: end.dueAt, due_in: end.dueIn }
    case 'release':
      return { ...none, status: 'suspended', due_in: 0 }
    case 'complete':
      return { ...none, status: 'completed', output: end.output }
    case 'fail':
      return { ...none, status: 'failed', error: end.error, error_code: end.errorCode }
    case 'block':
      return {
        ...{ ...none, status: 'blocked', error: end.error, error_code: end.errorCode },
        due_in: end.retryIn,
      }
  }
}

import type { Dispatch } from '../../../core/dispatch.ts'
import type { Value } from '../dialect.ts'
import { REPLACE_WAIT } from '../operation_rows.ts'
import type { FusedPlan } from './fused_plan.ts'
import type { StatementParts } from './statement_parts.ts'

/** Only what belongs to a turn that was accepted; `turn` is its number. */
const ACCEPTED = 'cross join accepted cross join clock where accepted.flags[u.turn]'

/** History rows; a position that is taken fails the whole statement. */
export function record(parts: StatementParts, records: FusedPlan['records']): void {
  parts.add(
    `recorded as (
      insert into durable_history (run_id, generation, seq, kind, name, called_after, ordinal, status, attempts, output,
        error, token, duration_ms, started_at, ended_at)
      select u.run_id, 0, u.seq, u.kind, u.name, u.called_after, u.ordinal, u.status, u.attempts, u.output, u.error,
        u.token, u.duration, clock.at - u.duration, clock.at
      from unnest(?::integer[], ?::text[], ?::bigint[], ?::integer[], ?::text[], ?::text[], ?::integer[], ?::integer[],
        ?::text[], ?::integer[], ?::text[], ?::text[], ?::bigint[])
        as u (turn, run_id, token, seq, kind, name, called_after, ordinal, status, attempts, output, error, duration)
      ${ACCEPTED})`,
    records.map(({ turn }) => turn),
    records.map(({ runId }) => runId),
    records.map(({ token }) => token),
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

/** Waits for time and for children, and for what was sent to workers. */
export function openWaits(parts: StatementParts, opened: FusedPlan['opened']): void {
  const plain = opened.filter(({ dispatch }) => dispatch === null)
  const sent = opened.flatMap(({ dispatch, ...wait }) => (dispatch ? { ...wait, dispatch } : []))
  if (plain.length > 0) open(parts, { part: 'opened', opened: plain, columns: [] })
  if (sent.length === 0) return
  const of = (column: string, type: string, value: (dispatch: Dispatch) => Value) => ({
    column,
    type,
    values: sent.map(({ dispatch }) => value(dispatch)),
  })
  const columns = [
    of('dispatch_generation', 'bigint', ({ generation }) => generation),
    of('dispatch_attempt', 'integer', ({ attempt }) => attempt),
    of('dispatch_id', 'text', ({ id }) => id),
    of('redispatches', 'integer', ({ redispatches }) => redispatches),
    of('silence_ms', 'bigint', ({ silenceMs }) => silenceMs),
  ]
  open(parts, { part: 'dispatched', opened: sent, columns })
}

/** @param params.columns those that are null where they are left out */
function open(
  parts: StatementParts,
  params: {
    part: string
    opened: readonly Omit<FusedPlan['opened'][number], 'dispatch'>[]
    columns: readonly { column: string; type: string; values: readonly Value[] }[]
  }
): void {
  const { part, opened, columns } = params
  const extra = columns.map(({ column }) => `, ${column}`).join('')
  const extraValues = columns.map(({ column }) => `, u.${column}`).join('')
  const extraArrays = columns.map(({ type }) => `, ?::${type}[]`).join('')
  parts.add(
    `${part} as (
      insert into durable_waits (run_id, seq, kind, name, called_after, token, target, inputs, due_at, attempts, error,
        opened_at, served${extra})
      select u.run_id, u.seq, u.kind, u.name, u.called_after, null, u.target, u.inputs,
        coalesce(clock.at + u.due_in, u.due_at), u.attempts, u.error, clock.at, 0${extraValues}
      from unnest(?::integer[], ?::text[], ?::integer[], ?::text[], ?::text[], ?::integer[], ?::text[], ?::integer[],
        ?::bigint[], ?::bigint[], ?::integer[], ?::text[]${extraArrays})
        as u (turn, run_id, seq, kind, name, called_after, target, inputs, due_in, due_at, attempts, error${extra})
      ${ACCEPTED}
      on conflict (run_id, seq) do update set ${REPLACE_WAIT})`,
    opened.map(({ turn }) => turn),
    opened.map(({ runId }) => runId),
    opened.map(({ seq }) => seq),
    opened.map(({ kind }) => kind),
    opened.map(({ name }) => name),
    opened.map(({ after }) => after),
    opened.map(({ target }) => target),
    opened.map(({ inputs }) => inputs),
    opened.map(({ dueIn }) => dueIn),
    opened.map(({ dueAt }) => dueAt),
    opened.map(({ attempts }) => attempts),
    opened.map(({ error }) => error),
    ...columns.map(({ values }) => values)
  )
}

export function closeWaits(parts: StatementParts, closed: FusedPlan['closed']): void {
  parts.add(
    `closed as (
      delete from durable_waits w
      using (
        select u.run_id, u.seq from unnest(?::integer[], ?::text[], ?::integer[]) as u (turn, run_id, seq)
        ${ACCEPTED} offset 0) u
      where w.run_id = u.run_id and w.seq = u.seq)`,
    closed.map(({ turn }) => turn),
    closed.map(({ runId }) => runId),
    closed.map(({ seq }) => seq)
  )
}

import type { Write } from '../../../core/change_set.ts'
import type { KeptSignal, LockedState, Waiter } from '../../../core/fold.ts'
import type { SignalEntry } from '../../../core/history.ts'
import { the } from '../../../core/present.ts'
import type { RunRow } from '../../../core/run.ts'
import { type InboxColumns, toSignal } from '../operation_rows.ts'
import { type RunColumns, runColumns, toRun } from '../run_rows.ts'
import type { PgResult } from './driver.ts'
import { FRAGMENTS } from './fragments.ts'
import type { Needs } from './needs.ts'
import type { PgStatement } from './session.ts'
import { lockTokens, stripesOf, tryTokens } from './token_locks.ts'

/** How long a transaction that passes over what others hold waits for what it cannot pass over: a run being inserted. */
export const NO_WAIT: PgStatement = {
  sql: `select set_config('lock_timeout', '100', true)`,
  values: [],
}
const LOCK_RUNS = `select ${runColumns('r')} from durable_runs r where r.id in (
    select unnest(?::text[])
    union select c.parent_id from durable_runs c where c.id = any(?::text[]) and c.parent_awaited = 1
    union select w.run_id from durable_waits w where w.token = any(?::text[]) and w.served = 0)
  order by r.id for no key update`
const CLOCK_AND_RUNS = `select clock.at as now, ${runColumns('r')} from (select ${FRAGMENTS.now} as at) clock
  left join durable_runs r on r.id = any(?::text[])`
const UNREAD = `select run_id, no, kind, seq, received_at, signal_id, token, payload from durable_inbox
  where run_id = any(?::text[]) and kind = 'signal' order by run_id, no`
const AWAITED_CHILDREN = `select parent_id, id from durable_runs where parent_id = any(?::text[])
  and parent_awaited = 1 and ended_at is null order by parent_seq, parent_index`
/** Of all that are kept, the oldest ones that the batch can use, and those that it sends. */
const KEPT = `select k.* from unnest(?::text[], ?::integer[]) as asked (token, many)
    cross join lateral (select s.token, s.signal_id, s.payload, s.received_at, s.registration from durable_signals s
      where s.token = asked.token order by s.received_at, s.registration limit asked.many) k
  union select token, signal_id, payload, received_at, registration from durable_signals
    where token = any(?::text[]) and signal_id = any(?::text[])
  order by received_at, registration`
const WAITERS = `select token, run_id, seq from durable_waits where token = any(?::text[]) and served = 0
  order by registration`
const IN_INBOX = `select token, signal_id from durable_inbox where token = any(?::text[]) and signal_id = any(?::text[])`

/** The fold asks for rows that have not been locked: the batch begins anew, with them. */
export class NotLockedError extends Error {
  constructor(readonly missing: Partial<Record<'runs' | 'ending' | 'tokens', readonly string[]>>) {
    super('Rows that a batch needs have not been locked')
  }
}

/** Somebody else holds rows that the batch needs, and the caller does not want to wait. */
export class HeldElsewhereError extends Error {
  /** @param writes those that need them, with all other writes of their runs */
  constructor(readonly writes: readonly Write[] = []) {
    super('Another transaction holds a row that the batch needs')
  }
}

/** What is asked of the database for a batch, by name, in order. */
type Question =
  'stripes' | 'locked' | 'readable' | 'unread' | 'children' | 'kept' | 'waiters' | 'inInbox'

/**
 * The statements that lock what a batch needs, tokens before runs and runs in order of id, and then read it. Each
 * begins after the one before has ended: what is read is as new as the locks.
 */
export function lockStatements(
  needs: Needs,
  { skipLocked }: { skipLocked: boolean }
): Map<Question, PgStatement> {
  const [runs, ending, tokens] = [[...needs.runs], [...needs.ending], [...needs.tokens]]
  const statements = new Map<Question, PgStatement>()
  const stripes = stripesOf(tokens)
  if (tokens.length > 0)
    statements.set('stripes', skipLocked ? tryTokens(stripes) : lockTokens(stripes))
  const sql = skipLocked ? `${LOCK_RUNS} skip locked` : LOCK_RUNS
  statements.set('locked', { sql, values: [runs, ending, tokens] })
  const readable = [...new Set([...runs, ...needs.wanted])]
  statements.set('readable', { sql: CLOCK_AND_RUNS, values: [readable] })
  if (runs.length > 0) statements.set('unread', { sql: UNREAD, values: [runs] })
  if (ending.length > 0) statements.set('children', { sql: AWAITED_CHILDREN, values: [ending] })
  if (tokens.length === 0) return statements
  const opened = [[...needs.opened.keys()], [...needs.opened.values()]]
  statements.set('kept', { sql: KEPT, values: [...opened, tokens, [...needs.signals]] })
  statements.set('waiters', { sql: WAITERS, values: [tokens] })
  statements.set('inInbox', { sql: IN_INBOX, values: [tokens, [...needs.signals]] })
  return statements
}

/** The state that a batch is folded on, as {@link lockStatements} have found it. */
export class LockedRows implements LockedState {
  readonly now: number
  /** Runs whose rows are locked. */
  readonly locked = new Map<string, RunRow>()
  #read = new Map<string, RunRow>()
  #needs: Needs
  #isTokenHeld: boolean
  #unread: Map<string, SignalEntry[]>
  #children: Map<string, string[]>
  #kept: Map<string, KeptSignal[]>
  #waiters: Map<string, Waiter[]>
  #inInbox: Set<string>

  constructor(needs: Needs, answers: ReadonlyMap<Question, PgResult>) {
    this.#needs = needs
    const rows = <T>(question: Question) => (answers.get(question)?.rows ?? []) as T[]
    this.#isTokenHeld = rows<{ isLocked?: boolean }>('stripes').some(
      (row) => row.isLocked === false
    )
    for (const row of rows<RunColumns>('locked')) this.locked.set(row.id, toRun(row))
    const read = rows<{ now: number } & (RunColumns | { id: null })>('readable')
    this.now = the(read[0], 'the clock of the store').now
    for (const row of read) if (row.id !== null) this.#read.set(row.id, toRun(row))
    this.#unread = grouped(rows<InboxColumns & { kind: 'signal' }>('unread'), (row) => [
      row.run_id,
      toSignal(row),
    ])
    this.#children = grouped(rows<{ parent_id: string; id: string }>('children'), (row) => [
      row.parent_id,
      row.id,
    ])
    this.#kept = grouped(rows<KeptColumns>('kept'), ({ token, signal_id: id, ...row }) => [
      token,
      { id, token, payload: row.payload, receivedAt: row.received_at },
    ])
    this.#waiters = grouped(rows<WaiterColumns>('waiters'), (row) => [
      row.token,
      { runId: row.run_id, seq: row.seq },
    ])
    this.#inInbox = new Set(
      rows<KeptColumns>('inInbox').map((row) => signalKey(row.token, row.signal_id))
    )
  }

  /** As it was read; the locked one is newer, if there is one. */
  stored(id: string): RunRow | undefined {
    return this.locked.get(id) ?? this.#read.get(id)
  }

  run(id: string): RunRow | undefined {
    const locked = this.locked.get(id)
    if (locked) return locked
    const { runs, wanted } = this.#needs
    const read = this.#read.get(id)
    if (runs.has(id)) {
      if (read) throw new HeldElsewhereError()
      return undefined
    }
    if (!wanted.has(id)) throw new NotLockedError({ runs: [id] })
    return read
  }

  keptSignals(token: string): readonly KeptSignal[] {
    this.#expectLocked(token)
    return this.#kept.get(token) ?? []
  }

  waiters(token: string): readonly Waiter[] {
    this.#expectLocked(token)
    return this.#waiters.get(token) ?? []
  }

  unreadSignals(runId: string, after: number): readonly SignalEntry[] {
    if (!this.#needs.runs.has(runId)) throw new NotLockedError({ runs: [runId] })
    return this.#unread.get(runId)?.filter(({ no }) => no > after) ?? []
  }

  /** What becomes of a run may become of its children: they are locked with their own, level by level. */
  awaitedChildren(runId: string): readonly string[] {
    const { runs, ending } = this.#needs
    if (!ending.has(runId)) throw new NotLockedError({ runs: [runId], ending: [runId] })
    const children = this.#children.get(runId) ?? []
    if (children.every((id) => runs.has(id) && ending.has(id))) return children
    throw new NotLockedError({ runs: children, ending: children })
  }

  hasSignal(id: string, token: string): boolean {
    this.#expectLocked(token)
    const isKept = this.#kept.get(token)?.some((signal) => signal.id === id)
    return isKept === true || this.#inInbox.has(signalKey(token, id))
  }

  /** Locked by their hashes, of which all are taken or none is worth anything. */
  #expectLocked(token: string) {
    if (!this.#needs.tokens.has(token))
      throw new NotLockedError({ tokens: [token, ...this.#givenBack()] })
    if (this.#isTokenHeld) throw new HeldElsewhereError()
  }

  /** Tokens of what runs that end have not read: the fold asks for one after the other. */
  #givenBack(): string[] {
    const unread = [...this.#needs.ending].flatMap((runId) => this.#unread.get(runId) ?? [])
    return unread.map(({ token }) => token)
  }
}

interface KeptColumns {
  token: string
  signal_id: string
  payload: string
  received_at: number
}

interface WaiterColumns {
  token: string
  run_id: string
  seq: number
}

function grouped<Row, Entry>(
  rows: readonly Row[],
  convert: (row: Row) => [key: string, entry: Entry]
): Map<string, Entry[]> {
  const groups = new Map<string, Entry[]>()
  for (const row of rows) {
    const [key, entry] = convert(row)
    const group = groups.get(key)
    if (group) group.push(entry)
    else groups.set(key, [entry])
  }
  return groups
}

function signalKey(token: string, id: string): string {
  return `${token} ${id}`
}

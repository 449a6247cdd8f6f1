import type { Write } from '../../../core/change_set.ts'
import type { KeptSignal, LockedState, Waiter } from '../../../core/fold.ts'
import type { SignalEntry } from '../../../core/history.ts'
import { the } from '../../../core/present.ts'
import type { RunRow } from '../../../core/run.ts'
import { openedWaits } from '../opened_waits.ts'
import { type InboxColumns, toSignal } from '../operation_rows.ts'
import { type RunColumns, runColumns, toRun } from '../run_rows.ts'
import type { SqliteConnection } from './connection.ts'
import { FRAGMENTS } from './fragments.ts'

const RUN = `select ${runColumns('r')} from durable_runs r where r.id = ?`
const CLOCK_AND_RUNS = `select clock.at as now, wanted.value as wanted, ${runColumns('r')}
  from (select ${FRAGMENTS.now} as at) clock
  left join (${FRAGMENTS.texts}) wanted on true
  left join durable_runs r on r.id = wanted.value`
/** Of all that are kept, the oldest ones that the batch can use, and those that it sends. */
const KEPT = `select * from (select signal_id, payload, received_at, registration from durable_signals
    where token = ? order by received_at, registration limit ?)
  union select signal_id, payload, received_at, registration from durable_signals
    where token = ? and signal_id in (${FRAGMENTS.texts})
  order by received_at, registration`
const WAITERS = `select run_id, seq from durable_waits where token = ? and served = 0 order by registration`
const UNREAD = `select run_id, no, kind, seq, received_at, signal_id, token, payload from durable_inbox
  where run_id = ? and no > ? and kind = 'signal' order by no`
const AWAITED_CHILDREN = `select id from durable_runs where parent_id = ? and parent_awaited = 1
  and ended_at is null order by parent_seq, parent_index`
const KNOWN_SIGNAL = `select 1 from durable_signals where token = ? and signal_id = ?
  union all select 1 from durable_inbox where token = ? and signal_id = ? limit 1`

/**
 * The state a batch is folded on, read when the fold asks for it: the transaction holds the database's only write
 * lock, so that nothing changes between two reads. The clock and the runs that the batch names are read at once.
 */
export class LockedRows implements LockedState {
  readonly now: number
  #connection: SqliteConnection
  #runs = new Map<string, RunRow | undefined>()
  /** Waits that the batch opens, by token. */
  #opened: ReadonlyMap<string, number>
  /** Ids of the signals that the batch sends, as JSON. */
  #sent: string
  #kept = new Map<string, KeptSignal[]>()
  #waiters = new Map<string, Waiter[]>()

  constructor(connection: SqliteConnection, writes: readonly Write[]) {
    this.#connection = connection
    this.#opened = openedWaits(writes)
    this.#sent = JSON.stringify(writes.flatMap(sentBy))
    const ids = JSON.stringify([...new Set(writes.flatMap(runsOf))])
    const rows = connection.all<{ now: number; wanted: string | null } & MaybeRun>({
      sql: CLOCK_AND_RUNS,
      values: [ids],
    })
    this.now = the(rows[0], 'the clock of the store').now
    for (const row of rows)
      if (row.wanted !== null) this.#runs.set(row.wanted, isRun(row) ? toRun(row) : undefined)
  }

  run(id: string): RunRow | undefined {
    if (!this.#runs.has(id)) {
      const [row] = this.#connection.all<RunColumns>({ sql: RUN, values: [id] })
      this.#runs.set(id, row && toRun(row))
    }
    return this.#runs.get(id)
  }

  keptSignals(token: string): readonly KeptSignal[] {
    const read = () =>
      this.#connection
        .all<{ signal_id: string; payload: string; received_at: number }>({
          sql: KEPT,
          values: [token, this.#opened.get(token) ?? 0, token, this.#sent],
        })
        .map((row) => ({
          id: row.signal_id,
          token,
          payload: row.payload,
          receivedAt: row.received_at,
        }))
    return remembered(this.#kept, token, read)
  }

  waiters(token: string): readonly Waiter[] {
    const read = () =>
      this.#connection
        .all<{ run_id: string; seq: number }>({ sql: WAITERS, values: [token] })
        .map((row) => ({ runId: row.run_id, seq: row.seq }))
    return remembered(this.#waiters, token, read)
  }

  unreadSignals(runId: string, after: number): readonly SignalEntry[] {
    return this.#connection
      .all<InboxColumns & { kind: 'signal' }>({ sql: UNREAD, values: [runId, after] })
      .map(toSignal)
  }

  awaitedChildren(runId: string): readonly string[] {
    return this.#connection
      .all<{ id: string }>({ sql: AWAITED_CHILDREN, values: [runId] })
      .map(({ id }) => id)
  }

  hasSignal(id: string, token: string): boolean {
    return this.#connection.all({ sql: KNOWN_SIGNAL, values: [token, id, token, id] }).length > 0
  }
}

type MaybeRun = RunColumns | { id: null }

function isRun<T extends MaybeRun>(row: T): row is T & RunColumns {
  return row.id !== null
}

function remembered<T>(known: Map<string, T[]>, key: string, read: () => T[]): T[] {
  const rows = known.get(key) ?? read()
  known.set(key, rows)
  return rows
}

function sentBy(write: Write): string[] {
  if (write.type === 'signal') return [write.signal.id]
  return write.type === 'turn' ? write.signals.map(({ id }) => id) : []
}

/** The runs that a write is certain to ask for. */
function runsOf(write: Write): string[] {
  switch (write.type) {
    case 'turn':
      return [write.runId, ...write.children.map(({ run }) => run.id)]
    case 'cancel':
    case 'requeue':
    case 'wake':
      return [write.runId]
    case 'result':
      return [write.result.runId]
    case 'start':
      return [write.run.id]
    case 'signal':
      return []
  }
}

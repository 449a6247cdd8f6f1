import {
  type HistoryRecord,
  type InboxEntry,
  liveAndUndone,
  type Wait,
} from '../../core/history.ts'
import type { LoadedRun, LoadRequest } from '../../contracts/store.ts'
import type { Dialect } from './dialect.ts'
import {
  type HistoryColumns,
  type InboxColumns,
  toEntry,
  toRecord,
  toWait,
  WAIT_COLUMNS,
  type WaitColumns,
} from './operation_rows.ts'

/** Reads what turns need, whatever the number of runs in one look. */
export async function loadRuns(
  dialect: Dialect,
  requests: readonly LoadRequest[]
): Promise<LoadedRun[]> {
  if (requests.length === 0) return []
  const { now, isAmong } = dialect.sql
  const all = JSON.stringify(requests.map(({ runId }) => runId))
  const evicted = requests.filter(({ resident }) => !resident).map(({ runId }) => runId)
  const fresh = JSON.stringify(evicted)

  const { known, history, waits, inbox } = await dialect.readTogether<{
    known: { id: string; input: string | null; error: string | null; now: number }
    history: HistoryColumns
    waits: WaitColumns
    inbox: InboxColumns
  }>({
    known: {
      sql: `select r.id, p.input, p.error, ${now} as now from durable_runs r
        left join durable_payloads p on p.run_id = r.id and ${isAmong('r.id')} where ${isAmong('r.id')}`,
      values: [fresh, all],
    },
    history: {
      sql: `select * from durable_history
        where (generation = 0 or (kind = 'compensation' and status = 'completed')) and ${isAmong('run_id')}`,
      values: [fresh],
    },
    waits: {
      sql: `select ${WAIT_COLUMNS} from durable_waits where ${isAmong('run_id')}`,
      values: [all],
    },
    inbox: { sql: `select * from durable_inbox where ${isAmong('run_id')}`, values: [all] },
  })

  const byId = new Map(known.map((row) => [row.id, row]))
  const historyOf = grouped<HistoryColumns, HistoryRecord>(history, toRecord, bySeq)
  const waitsOf = grouped<WaitColumns, Wait>(waits, toWait, bySeq)
  const inboxOf = grouped<InboxColumns, InboxEntry>(inbox, toEntry, byNo)
  const clock = Math.max(...known.map((row) => row.now))
  return requests.flatMap(({ runId, inboxAfter }) => {
    const row = byId.get(runId)
    if (row === undefined) return []
    return {
      runId,
      input: row.input,
      error: row.error,
      ...liveAndUndone(historyOf(runId)),
      waits: waitsOf(runId),
      inbox: inboxOf(runId).filter((entry) => entry.no > inboxAfter),
      now: clock,
    }
  })
}

function bySeq(one: { seq: number }, other: { seq: number }): number {
  return one.seq - other.seq
}

function byNo(one: { no: number }, other: { no: number }): number {
  return one.no - other.no
}

function grouped<Columns extends { run_id: string }, Entry>(
  rows: readonly Columns[],
  convert: (row: Columns) => Entry,
  order: (one: Entry, other: Entry) => number
): (runId: string) => Entry[] {
  const groups = new Map<string, Entry[]>()
  for (const row of rows) {
    const group = groups.get(row.run_id)
    if (group) group.push(convert(row))
    else groups.set(row.run_id, [convert(row)])
  }
  for (const group of groups.values()) group.sort(order)
  return (runId) => groups.get(runId) ?? []
}

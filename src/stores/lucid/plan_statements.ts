import type { Plan, RunInsert, RunUpdate } from '../../core/fold.ts'
import { attributeText } from '../../core/search_attributes.ts'
import type { Fragments, Statement, Value } from './dialect.ts'
import {
  entryValues,
  INSERT_ENTRY,
  INSERT_RECORD,
  recordValues,
  UPSERT_WAIT,
  waitValues,
} from './operation_rows.ts'
import { INSERT_RUN, insertValues, UPDATE_RUN, updateValues } from './run_rows.ts'

const INSERT_PAYLOADS =
  'insert into durable_payloads (run_id, input, output, error) values (?, ?, ?, ?)'
const INSERT_TAG = 'insert into durable_tags (tag, created_at, run_id) values (?, ?, ?)'

const ADD_TAG = `insert into durable_tags (tag, created_at, run_id)
  select ?, r.created_at, r.id from durable_runs r where r.id = ?
    and not exists (select 1 from durable_tags t where t.run_id = r.id and t.tag = ?)`

const CLOSE_WAIT = 'delete from durable_waits where run_id = ? and seq = ?'
const SERVE_WAIT = 'update durable_waits set served = 1 where run_id = ? and seq = ?'
const CLEAR_WAITS = 'delete from durable_waits where run_id = ?'

// Not correlated, so that it is evaluated once: each row would else find those before it already moved.
const RETIRE = `update durable_history set generation = (
    select max(other.generation) + 1 from durable_history other where other.run_id = ?),
  name = case when kind = 'handoff' then 'onError:retried:' || substr(name, length('onError:') + 1) else name end
  where run_id = ? and generation = 0 and `
const REMOVE_TAGS = 'delete from durable_tags where run_id = ? and substr(tag, 1, ?) = ?'

const SET_ATTRIBUTE = `insert into durable_attributes (name, value, created_at, run_id)
  select ?, ?, r.created_at, r.id from durable_runs r where r.id = ?`
const REMOVE_ATTRIBUTE = 'delete from durable_attributes where run_id = ? and name = ?'

const TAKE_ENTRIES = 'delete from durable_inbox where run_id = ? and no <= ?'
const REMOVE_ENTRY = 'delete from durable_inbox where run_id = ? and no = ?'
const CLEAR_INBOX = 'delete from durable_inbox where run_id = ?'

const USE_SIGNAL = 'delete from durable_signals where token = ? and signal_id = ?'
const KEEP_SIGNAL =
  'insert into durable_signals (token, signal_id, payload, received_at) values (?, ?, ?, ?)'

/**
 * The statements that write a plan, in an order in which what a batch takes away and puts back ends as the fold
 * says: deletions come before the insertions of the same table, and runs that ended are cleared last.
 */
export function planStatements(plan: Plan, { isAmongIntegers }: Fragments): Statement[] {
  const statements: Statement[] = []
  const add = (sql: string, values: Value[]) => statements.push({ sql, values })

  for (const insert of plan.inserts) statements.push(...insertStatements(insert))
  for (const update of plan.updates) statements.push(...updateStatements(update))
  for (const { runId, seqs } of plan.retired)
    add(`${RETIRE}${isAmongIntegers('seq')}`, [runId, runId, JSON.stringify(seqs)])
  for (const record of plan.records) add(INSERT_RECORD, recordValues(record))
  for (const { runId, seq } of plan.closedWaits) add(CLOSE_WAIT, [runId, seq])
  for (const wait of plan.waits) add(UPSERT_WAIT, waitValues(wait))
  for (const { runId, seq } of plan.served) add(SERVE_WAIT, [runId, seq])
  for (const { runId, upTo } of plan.taken) add(TAKE_ENTRIES, [runId, upTo])
  for (const { runId, no } of plan.removed) add(REMOVE_ENTRY, [runId, no])
  for (const entry of plan.inbox) add(INSERT_ENTRY, entryValues(entry))
  for (const { token, id } of plan.usedSignals) add(USE_SIGNAL, [token, id])
  for (const { token, id, payload, receivedAt } of plan.keptSignals)
    add(KEEP_SIGNAL, [token, id, payload, receivedAt])
  for (const { runId, values } of plan.attributes)
    for (const [name, value] of Object.entries(values)) {
      add(REMOVE_ATTRIBUTE, [runId, name])
      if (value !== null) add(SET_ATTRIBUTE, [name, attributeText(value), runId])
    }
  for (const { runId, prefix } of plan.removedTags) add(REMOVE_TAGS, [runId, prefix.length, prefix])
  for (const { runId, tag } of plan.addedTags) add(ADD_TAG, [tag, runId, tag])
  const neverTold = neverToldRuns(plan)
  for (const runId of plan.cleared) {
    add(CLEAR_WAITS, [runId])
    if (!neverTold.has(runId)) add(CLEAR_INBOX, [runId])
  }
  return statements
}

/** Also what a caller's own transaction runs to store a run. */
export function insertStatements({ row, input, output, error, tags }: RunInsert): Statement[] {
  return [
    { sql: INSERT_RUN, values: insertValues(row) },
    { sql: INSERT_PAYLOADS, values: [row.id, input, output, error] },
    ...new Set(tags)
      .values()
      .map((tag) => ({ sql: INSERT_TAG, values: [tag, row.createdAt, row.id] })),
  ]
}

function updateStatements({ row, output, error }: RunUpdate): Statement[] {
  const statements: Statement[] = [{ sql: UPDATE_RUN, values: updateValues(row) }]
  const payloads = Object.entries({ output, error }).filter(
    (entry): entry is [string, string | null] => entry[1] !== undefined
  )
  if (payloads.length === 0) return statements
  const set = payloads.map(([column]) => `${column} = ?`).join(', ')
  const values = [...payloads.map(([, value]) => value), row.id]
  statements.push({ sql: `update durable_payloads set ${set} where run_id = ?`, values })
  return statements
}

/** Runs that have never had an inbox entry. */
function neverToldRuns(plan: Plan): Set<string> {
  const rows = [...plan.updates, ...plan.inserts].map(({ row }) => row)
  return new Set(rows.filter((row) => row.inboxSeq === 0).map((row) => row.id))
}

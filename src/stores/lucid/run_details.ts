import type { HistoryRecord, Wait } from '../../core/history.ts'
import type { RunPayloads, RunPhase, RunStatus } from '../../core/run.ts'
import type { StoredAttribute } from '../../core/search_attributes.ts'
import type { RunStanding, StoredRun } from '../../contracts/store.ts'
import type { Dialect } from './dialect.ts'
import {
  type HistoryColumns,
  toRecord,
  toWait,
  WAIT_COLUMNS,
  type WaitColumns,
} from './operation_rows.ts'
import { type RunColumns, runColumns, toRun } from './run_rows.ts'

const RUN = `select ${runColumns('r')}, p.input, p.output, p.error from durable_runs r
  join durable_payloads p on p.run_id = r.id where r.id = ?`
/** One statement: both are read for every run that is looked at. */
const MARKS = `select tag as name, null as value from durable_tags where run_id = ?
  union all select name, value from durable_attributes where run_id = ? order by 1`
const RECORDS = 'select * from durable_history where run_id = ? order by generation, seq'
const WAITS = `select ${WAIT_COLUMNS} from durable_waits where run_id = ? order by seq`

const STANDINGS = 'select id, claim_key, status, phase, token, error_code from durable_runs'

/** A run with its payloads, tags and search attributes. */
export async function readRun(dialect: Dialect, runId: string): Promise<StoredRun | null> {
  const values = [runId]
  const [row] = await dialect.read<RunColumns & RunPayloads>({ sql: RUN, values })
  if (row === undefined) return null
  const marks = await dialect.read<Mark>({ sql: MARKS, values: [runId, runId] })
  const tags = marks.filter(({ value }) => value === null).map(({ name }) => name)
  const attributes = Object.fromEntries(marks.flatMap(attributeOf))
  const { input, output, error } = row
  return { ...toRun(row), input, output, error, tags, attributes }
}

/** A tag, or a search attribute with its value as JSON. */
interface Mark {
  name: string
  value: string | null
}

function attributeOf({ name, value }: Mark): [string, StoredAttribute][] {
  return value === null ? [] : [[name, JSON.parse(value) as StoredAttribute]]
}

/** The operations of a run, recorded and open. */
export async function readHistory(
  dialect: Dialect,
  runId: string
): Promise<{ records: HistoryRecord[]; waits: Wait[] } | null> {
  const values = [runId]
  const run = await dialect.read({ sql: 'select 1 from durable_runs where id = ?', values })
  if (run.length === 0) return null
  const records = await dialect.read<HistoryColumns>({ sql: RECORDS, values })
  const waits = await dialect.read<WaitColumns>({ sql: WAITS, values })
  return { records: records.map(toRecord), waits: waits.map(toWait) }
}

/** Where runs stand, without payloads; unknown ones are left out. */
export async function readStandings(
  dialect: Dialect,
  runIds: readonly string[]
): Promise<RunStanding[]> {
  if (runIds.length === 0) return []
  const rows = await dialect.read<StandingColumns>({
    sql: `${STANDINGS} where id in (${dialect.sql.texts})`,
    values: [JSON.stringify(runIds)],
  })
  return rows.map(toStanding)
}

/** The runs that an instance holds; only a running run has an owner. */
export async function readHeld(dialect: Dialect, instance: string): Promise<RunStanding[]> {
  const rows = await dialect.read<StandingColumns>({
    sql: `${STANDINGS} where owner = ? and due_at is null`,
    values: [instance],
  })
  return rows.map(toStanding)
}

interface StandingColumns {
  id: string
  claim_key: string
  status: RunStatus
  phase: RunPhase
  token: number
  error_code: string | null
}

function toStanding(columns: StandingColumns): RunStanding {
  const { id, claim_key: claimKey, status, phase, token, error_code: errorCode } = columns
  return { runId: id, claimKey, status, phase, token, errorCode }
}

/** What runs failed with, and nothing else of their payloads. */
export function readErrors(
  dialect: Dialect,
  runIds: readonly string[]
): Promise<{ runId: string; error: string }[]> {
  return readPayloads(dialect, { payload: 'error', runIds })
}

/** What runs were given; unknown ones are left out. */
export function readInputs(
  dialect: Dialect,
  runIds: readonly string[]
): Promise<{ runId: string; input: string }[]> {
  return readPayloads(dialect, { payload: 'input', runIds })
}

async function readPayloads<Payload extends 'input' | 'error'>(
  dialect: Dialect,
  { payload, runIds }: { payload: Payload; runIds: readonly string[] }
): Promise<({ runId: string } & Record<Payload, string>)[]> {
  if (runIds.length === 0) return []
  return dialect.read({
    sql: `select run_id as "runId", ${payload} from durable_payloads
      where ${payload} is not null and run_id in (${dialect.sql.texts})`,
    values: [JSON.stringify(runIds)],
  })
}

import type { ChildOutcome } from '../../core/history.ts'
import type { RunStatus } from '../../core/run.ts'
import type { ChildState } from '../../contracts/store.ts'
import type { Dialect } from './dialect.ts'

interface ParentOperation {
  runId: string
  seq: number
}

const OUTCOMES = `select r.parent_index, r.id, r.status, p.output, p.error from durable_runs r
  join durable_payloads p on p.run_id = r.id
  where r.parent_id = ? and r.parent_seq = ? and r.status in ('completed', 'failed', 'cancelled', 'dead')
  order by r.parent_index`
const STATES = `select r.parent_index, r.id, r.status from durable_runs r where r.parent_id = ? and r.parent_seq = ?
  order by r.parent_index`

interface OutcomeColumns {
  parent_index: number
  id: string
  status: RunStatus
  output: string | null
  error: string | null
}

/** Outcomes of the ended children of an operation, by index. */
export async function readOutcomes(
  dialect: Dialect,
  parent: ParentOperation
): Promise<ChildOutcome[]> {
  const values = [parent.runId, parent.seq]
  const rows = await dialect.read<OutcomeColumns>({ sql: OUTCOMES, values })
  return rows.map(({ parent_index: index, id: runId, status, output, error }) => ({
    index,
    runId,
    status,
    output,
    error,
  }))
}

/** All children of an operation, without payloads. */
export async function readStates(dialect: Dialect, parent: ParentOperation): Promise<ChildState[]> {
  const values = [parent.runId, parent.seq]
  const rows = await dialect.read<{ parent_index: number; id: string; status: RunStatus }>({
    sql: STATES,
    values,
  })
  return rows.map(({ parent_index: index, id: runId, status }) => ({ index, runId, status }))
}

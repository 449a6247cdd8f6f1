import type { RunRow } from '../../../core/run.ts'
import { claimed } from '../../../core/transition.ts'
import type { ClaimRequest } from '../../../contracts/store.ts'
import { claimStatements } from '../claim_statement.ts'
import { type RunColumns, runColumns, toRun, UPDATE_RUN, updateValues } from '../run_rows.ts'
import type { SqliteConnection } from './connection.ts'
import { FRAGMENTS } from './fragments.ts'

/** Looks first without the write lock: a worker with nothing to do neither waits for others nor makes them wait. */
export async function claimDue(
  connection: SqliteConnection,
  { owner, claimKeys, limit }: ClaimRequest
): Promise<RunRow[]> {
  if (claimKeys.length === 0 || limit < 1) return []
  const { now } = FRAGMENTS
  const wanted = { owner, claimKeys: [...new Set(claimKeys)], now }
  const probes = claimStatements({ ...wanted, limit: 1, columns: 'r.priority, r.due_at' })
  const isAnyDue = await connection.attempt(() =>
    probes.some((probe) => connection.all(probe).length > 0)
  )
  if (!isAnyDue) return []

  const statements = claimStatements({ ...wanted, limit, columns: runColumns('r') })
  return connection.transaction(() => {
    const due = statements.flatMap((statement) =>
      connection.all<RunColumns & { now: number }>(statement)
    )
    if (statements.length > 1) due.sort(bySoonest)
    const taken = due.slice(0, limit).map((row) => claimed(toRun(row), { owner, now: row.now }))
    for (const run of taken) connection.run({ sql: UPDATE_RUN, values: updateValues(run) })
    return taken
  })
}

function bySoonest(one: RunColumns, other: RunColumns): number {
  return one.priority - other.priority || (one.due_at ?? 0) - (other.due_at ?? 0)
}

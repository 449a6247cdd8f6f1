import { ForkedProcess } from '../../tests/support/forked_process.ts'
import { PostgresDatabase } from '../../tests/stores/postgres_database.ts'
import type { Outcome, ThroughputParams } from '../workloads.ts'
import type { PeerName } from './peer_subjects.ts'
import type { PeerOrder, PeerTask } from './peer_task.ts'
import type { StatementCounts } from './statement_counts.ts'

/** Measures a subject on a new database, in a process that does nothing else. */
export function measureApart(
  subject: PeerName,
  work: { params: ThroughputParams; profile: string | null }
): Promise<Outcome> {
  return apart(subject, { kind: 'throughput', ...work })
}

/** The same for the statements of a run alone. */
export function countApart(subject: PeerName): Promise<StatementCounts> {
  return apart(subject, { kind: 'statements' })
}

async function apart<Told>(subject: PeerName, task: PeerTask): Promise<Told> {
  const database = await PostgresDatabase.empty()
  const order: PeerOrder = { subject, database: database.name, task }
  const script = new URL('./peer_process.ts', import.meta.url)
  const child = new ForkedProcess<Told>(script, [JSON.stringify(order)])
  try {
    return await child.heard()
  } finally {
    await child.kill()
    await database.remove()
  }
}

import { PostgresProxy } from '../../tests/stores/postgres_proxy.ts'
import { SERVER } from '../../tests/stores/postgres_server.ts'
import { median } from '../rounds.ts'
import type { StepSubject } from '../subject.ts'
import { PEERS, type PeerName } from './peer_subjects.ts'

/** Statements that the server completed for a run alone, BEGIN and COMMIT among them. */
export interface StatementCounts {
  oneStep: number
  furtherStep: number
}

const RUNS = 21
const STEPS = 10

/** Counts them at the server's answers, on an empty database. */
export async function countStatements(
  name: PeerName,
  { database }: { database: string }
): Promise<StatementCounts> {
  const proxy = await PostgresProxy.start(SERVER)
  const subject = await PEERS[name]({ server: proxy.address, database })({ inFlight: 50 })
  const of = (steps: number) => statementsOf(subject, { steps, proxy })
  await of(1)
  const oneStep = await of(1)
  const furtherStep = ((await of(STEPS)) - oneStep) / (STEPS - 1)
  await subject.close()
  await proxy.stop()
  return { oneStep, furtherStep }
}

/** What most runs took, one after the other: what else a process asks now and then falls into few of them. */
async function statementsOf(
  subject: StepSubject,
  { steps, proxy }: { steps: number; proxy: PostgresProxy }
): Promise<number> {
  const counts: number[] = []
  for (let run = 0; run < RUNS; run++) {
    const before = proxy.completed
    await subject.run(`alone-${steps}-${run}`, steps)
    counts.push(proxy.completed - before)
  }
  return median(counts)
}

import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { SERVER, SKIPPED } from '../../tests/stores/postgres_server.ts'
import { type Comparison, comparisonLines, measureInTurn, statementLines } from './comparison.ts'
import { DBOS, OWN, PEER_NAMES } from './peer_subjects.ts'

/** Each takes some seconds; a second before is not measured, in which functions get compiled and connections opened. */
const COMPARISONS: readonly Comparison[] = [
  {
    label: 'W1 one-step runs/s',
    params: {
      ...{ title: 'W1 one-step runs on PostgreSQL, 50 in flight', counted: 'runs', inFlight: 50 },
      ...{ steps: 1, warmUpMs: 1_000 },
    },
    runs: { [OWN]: 15_000, [DBOS]: 3_000 },
  },
  {
    label: 'W2 steps/s of ten-step runs',
    params: {
      ...{ title: 'W2 ten-step runs on PostgreSQL, 50 in flight', counted: 'steps', inFlight: 50 },
      ...{ steps: 10, warmUpMs: 1_000 },
    },
    runs: { [OWN]: 3_000, [DBOS]: 600 },
  },
]
const STATEMENTS = 'Statements of a run alone on PostgreSQL, BEGIN and COMMIT included'

/** What was asked for on the command line. */
export interface SectionOptions {
  /** Only workloads whose title contains it. */
  only: string
  /** Only subjects whose name contains it. */
  subject: string
  rounds: number
  /** A folder for profiles of the engine. */
  profile?: string
}

/** The engine beside others on PostgreSQL. False: none of it was asked for. */
export async function printPostgresSection(options: SectionOptions): Promise<boolean> {
  const comparisons = COMPARISONS.filter(({ params }) => params.title.includes(options.only))
  const asked = PEER_NAMES.filter((name) => name.includes(options.subject))
  const isCounted = STATEMENTS.includes(options.only)
  if (asked.length === 0 || (comparisons.length === 0 && !isCounted)) return false
  if (SKIPPED !== null) {
    console.log(`Workloads on PostgreSQL are skipped: ${SKIPPED}\n`)
    return true
  }
  const subjects = asked.filter((name) => name !== DBOS || isDbosInstalled())
  console.log(`PostgreSQL at ${SERVER.host}:${SERVER.port}, each subject in a process of its own\n`)
  for (const comparison of comparisons) {
    const results = await measureInTurn(comparison, { ...options, subjects })
    console.log(comparisonLines(comparison, results).join('\n') + '\n')
  }
  if (isCounted) {
    const lines = await statementLines(subjects)
    console.log([STATEMENTS, ...lines].join('\n') + '\n')
  }
  return true
}

/** Installs it if need be; false when that failed, which is said. */
function isDbosInstalled(): boolean {
  const script = fileURLToPath(new URL('../../scripts/install_peers.mjs', import.meta.url))
  const { status } = spawnSync(process.execPath, [script], { stdio: 'inherit' })
  if (status !== 0) console.log(`${DBOS} is skipped: its package could not be installed`)
  return status === 0
}

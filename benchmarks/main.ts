import { parseArgs } from 'node:util'
import { ENGINE_TABLES, SLIM_TABLES } from './bare_tables.ts'
import { inMemory, onSqlite } from './engine_databases.ts'
import { printPostgresSection } from './peers/postgres_section.ts'
import { measureRecovery } from './recovery.ts'
import { BARE, ENGINE, measureInRounds, median, reportOf, shown } from './rounds.ts'
import { bareWriterOn, engineOn } from './subjects.ts'
import { fanOut, latency, throughput } from './workloads.ts'

/**
 * `--quick`: smaller and fewer rounds. `--only`: workloads whose title contains the text. `--subject`: subjects whose
 * name contains it. `--profile`: a folder for profiles of the engine on PostgreSQL, one for each round.
 */
const { values: args } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string', default: '' },
    subject: { type: 'string', default: '' },
    rounds: { type: 'string' },
    profile: { type: 'string' },
  },
})
const rounds = Number(args.rounds ?? (args.quick ? 3 : 5))
const scale = args.quick ? 1 : 3

const subjects = new Map([
  [BARE, bareWriterOn(SLIM_TABLES)],
  [`${BARE} on the engine's tables`, bareWriterOn(ENGINE_TABLES)],
  [ENGINE, engineOn(onSqlite)],
  ['engine, memory', engineOn(inMemory)],
])
const workloads = [
  throughput({
    ...{ title: 'W1 one-step runs, 50 in flight', counted: 'runs', inFlight: 50 },
    ...{ runs: 4_000 * scale, steps: 1 },
  }),
  throughput({
    ...{ title: 'W1 one-step runs, 500 in flight', counted: 'runs', inFlight: 500 },
    ...{ runs: 8_000 * scale, steps: 1 },
  }),
  throughput({
    ...{ title: 'W2 ten-step runs, 50 in flight', counted: 'steps', inFlight: 50 },
    ...{ runs: 600 * scale, steps: 10 },
  }),
  fanOut({ title: 'W3 one parent with 1,000 children', children: 1_000 }),
  latency({ title: 'W6 one-step run alone, start to result', runs: 200 * scale }),
]

// First, since packages may have to be installed for it.
const isOnPostgres = await printPostgresSection({ ...args, rounds })

const chosen = new Map([...subjects].filter(([name]) => name.includes(args.subject)))
const wanted = workloads.filter(({ title }) => chosen.size > 0 && title.includes(args.only))
for (const workload of wanted) {
  const results = await measureInRounds(workload, { subjects: chosen, rounds })
  console.log(reportOf(workload, results).join('\n') + '\n')
}

const KILLED_RUNS = 1_000
const killed = `W4 ${KILLED_RUNS} ten-step runs killed in the middle, start of the worker to done, sqlite`
const isKilled = killed.includes(args.only) && ENGINE.includes(args.subject)
if (isKilled) {
  const seconds: number[] = []
  for (let round = 0; round < rounds; round++) seconds.push(await measureRecovery(KILLED_RUNS))
  const spread = `${shown(Math.min(...seconds))} to ${shown(Math.max(...seconds))}`
  console.log(`${killed}: ${shown(median(seconds))} s  (${spread})`)
}

if (!isOnPostgres && wanted.length === 0 && !isKilled) {
  console.error('No workload and subject have names that contain what --only and --subject ask for')
  process.exitCode = 1
}

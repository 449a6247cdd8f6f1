import { parseArgs } from 'node:util'
import { ENGINE_TABLES, SLIM_TABLES } from './bare_tables.ts'
import { measureInRounds, print } from './rounds.ts'
import { bareWriterOn, engineOn, type SubjectFactory } from './subjects.ts'
import { fanOut, latency, throughput, type Workload } from './workloads.ts'

const { values: args } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string', default: '' },
    subject: { type: 'string', default: '' },
    rounds: { type: 'string' },
  },
})
const rounds = Number(args.rounds ?? (args.quick ? 3 : 5))
const scale = args.quick ? 1 : 4

const subjects: Record<string, SubjectFactory> = {
  'bare writer': bareWriterOn(SLIM_TABLES),
  "bare writer (engine's tables)": bareWriterOn(ENGINE_TABLES),
  'engine, sqlite': engineOn('sqlite'),
  'engine, memory': engineOn('memory'),
}

const workloads: Workload[] = [
  throughput({
    ...{ title: 'W1 one-step runs/s, 50 in flight', unit: 'runs/s' },
    ...{ runs: 2_000 * scale, steps: 1, inFlight: 50 },
  }),
  throughput({
    ...{ title: 'W1 one-step runs/s, 500 in flight', unit: 'runs/s' },
    ...{ runs: 3_000 * scale, steps: 1, inFlight: 500 },
  }),
  throughput({
    ...{ title: 'W2 steps/s of ten-step runs, 50 in flight', unit: 'steps/s' },
    ...{ runs: 400 * scale, steps: 10, inFlight: 50 },
  }),
  fanOut({ title: 'W3 children/s of a fan-out', children: 1_000 }),
  latency({ title: 'W6 one-step run alone, start to result', runs: 300 * scale }),
]

const chosen = Object.entries(subjects).filter(([name]) => name.includes(args.subject))
for (const workload of workloads.filter(({ title }) => title.includes(args.only))) {
  console.log(`\n${workload.title}`)
  print(workload, await measureInRounds(workload, { subjects: Object.fromEntries(chosen), rounds }))
}

// Imports a public data file with two workers, kills one on the way, and checks what came of it.
import { mkdirSync, rmSync } from 'node:fs'
import { join, relative } from 'node:path'
import { parseArgs } from 'node:util'
import { Fleet } from './demo/fleet.mjs'
import { Processes } from './demo/processes.mjs'
import { Progress } from './demo/progress.mjs'
import { compare } from './demo/table.mjs'
import { problemsOf } from './demo/verdict.mjs'
import { watch } from './demo/watch.mjs'

const { values: options } = parseArgs({
  options: { lines: { type: 'string' }, keep: { type: 'boolean', default: false } },
})
const RUN_ID = 'import'
const WORKERS = ['worker-1', 'worker-2']
/** Runs at once in each worker, with fewer for a small file, so that both have work when one is killed. */
const CONCURRENCY = 50

const folder = join(import.meta.dirname, 'tmp', 'demo', String(process.pid))
const file = join(folder, 'demo.sqlite3')
const processes = new Processes({
  folder,
  environment: { NODE_ENV: 'production', DB_FILE: file, DURABLE_STORE: 'lucid', LOG_LEVEL: 'info' },
})

function say(text) {
  console.log(`${(performance.now() / 1000).toFixed(1).padStart(6)} s  ${text}`)
}

async function main() {
  mkdirSync(folder, { recursive: true })
  const wanted = options.lines === undefined ? [] : [options.lines]
  const expected = JSON.parse(await processes.run(['scripts/count_lines.mjs', ...wanted]))
  const { lines } = expected
  await processes.run(['ace.js', 'migration:run', '--force'])
  const flags = [`--run-id=${RUN_ID}`, ...wanted.map((number) => `--lines=${number}`)]
  await processes.run(['ace.js', 'airports:import', ...flags])
  say(`import of ${lines} lines started on ${relative(process.cwd(), file)}: one run each`)

  const concurrency = Math.max(1, Math.min(CONCURRENCY, Math.floor(lines / 20)))
  const fleet = new Fleet({ processes, concurrency, say })
  for (const name of WORKERS) fleet.start(name)
  const progress = new Progress({ file, runId: RUN_ID })
  const isKilled = await watch({ progress, fleet, lines, concurrency, say })
  progress.close()
  const endings = await processes.stop()
  say('import ended, workers stopped')

  const report = JSON.parse(await processes.run(['ace.js', 'airports:report', RUN_ID]))
  const table = compare(report.counts, expected)
  console.log(`\n${table.text}\n`)
  console.log(`  steps recorded twice: ${report.recordedTwice.length}`)
  console.log(`  runs stranded: ${report.stranded.length}`)
  console.log(`  rows written again after the kill: ${report.rowsWrittenAgain}`)
  return problemsOf({ report, table, isKilled, endings })
}

const interruption = Promise.withResolvers()
for (const signal of ['SIGINT', 'SIGTERM'])
  process.on(signal, () => interruption.resolve([`ended by ${signal}`]))

const problems = await Promise.race([main(), interruption.promise]).catch((error) => [
  error.message,
])
await processes.stop()
for (const problem of problems) console.error(`  FAILED: ${problem}`)
if (options.keep || problems.length > 0)
  console.log(`  database and logs: ${relative(process.cwd(), folder)}`)
else rmSync(folder, { recursive: true, force: true })
process.exit(problems.length === 0 ? 0 : 1)

// Imports a public data file with two workers, kills one on the way, repairs a step that kills them, and checks what
// came of it.
import { mkdirSync, rmSync } from 'node:fs'
import { join, relative } from 'node:path'
import { parseArgs } from 'node:util'
import { Application } from './demo/application.mjs'
import { PostgresDatabase } from './demo/databases/postgres.mjs'
import { SqliteFile } from './demo/databases/sqlite.mjs'
import { Fleet } from './demo/fleet.mjs'
import { Processes } from './demo/processes.mjs'
import { Progress } from './demo/progress.mjs'
import { compare } from './demo/table.mjs'
import { problemsOf } from './demo/verdict.mjs'
import { Watch } from './demo/watch.mjs'

const { values: options } = parseArgs({
  options: {
    db: { type: 'string', default: 'sqlite' },
    lines: { type: 'string' },
    keep: { type: 'boolean', default: false },
  },
})
const RUN_ID = 'import'
const WORKERS = ['worker-1', 'worker-2']
/** Runs at once in each worker, with fewer for a small file, so that both have work when one is killed. */
const CONCURRENCY = 50
const DATABASES = { sqlite: SqliteFile, postgres: PostgresDatabase }

const Database = DATABASES[options.db]
if (!Database) {
  console.error(`--db=${options.db}: expected one of ${Object.keys(DATABASES).join(', ')}`)
  process.exit(1)
}
const folder = join(import.meta.dirname, 'tmp', 'demo', String(process.pid))
const application = new Application({ folder })
const database = new Database({ folder })
const processes = new Processes({
  logs: folder,
  directory: application.folder,
  environment: {
    NODE_ENV: 'production',
    DURABLE_STORE: 'lucid',
    LOG_LEVEL: 'info',
    ...database.environment,
  },
})

function say(text) {
  console.log(`${(performance.now() / 1000).toFixed(1).padStart(6)} s  ${text}`)
}

async function main() {
  mkdirSync(folder, { recursive: true })
  application.create()
  await database.create()
  const wanted = options.lines === undefined ? [] : [options.lines]
  const expected = JSON.parse(await processes.run(['scripts/count_lines.mjs', ...wanted]))
  const { lines } = expected
  await processes.run(['ace.js', 'migration:run', '--force'])
  const flags = [`--run-id=${RUN_ID}`, ...wanted.map((number) => `--lines=${number}`)]
  await processes.run(['ace.js', 'airports:import', ...flags])
  say(`import of ${lines} lines started on ${database.name}: one run each`)

  const concurrency = Math.max(1, Math.min(CONCURRENCY, Math.floor(lines / 20)))
  const progress = new Progress({ database, runId: RUN_ID })
  const fleet = new Fleet({ processes, names: WORKERS, concurrency, say })
  const watch = new Watch({ progress, fleet, lines, concurrency, say })
  fleet.start()
  let ticket
  const before = await watch.untilEnded(async (status) => {
    ticket = await progress.ticket()
    return status !== 'failed' || ticket !== undefined
  })
  say(`the import has ${before}`)
  const endings = []
  if (ticket) {
    say(`ticket: ${ticket.title}. ${ticket.reason}`)
    endings.push(...(await fleet.stop()))
    say(`workers stopped; ${application.fixStep()} is replaced by the one that works`)
    fleet.start()
    await processes.run(['ace.js', 'durable:retry', ticket.retry])
    say(`node ace durable:retry ${ticket.retry}`)
    await watch.untilEnded()
  }
  endings.push(...(await fleet.stop()))
  say('import ended, workers stopped')

  const report = JSON.parse(await processes.run(['ace.js', 'airports:report', RUN_ID]))
  const table = compare([
    { title: 'results', counts: report.results, leavesOut: /^airports in|^metres/ },
    { title: 'tables', counts: report.tables, leavesOut: /^lines$/ },
    { title: 'separate script', counts: expected },
  ])
  console.log(`\n${table.text}\n`)
  console.log(`  deaths by the poison line: ${watch.deaths}`)
  console.log(`  steps recorded twice: ${report.recordedTwice.length}`)
  console.log(`  runs stranded: ${report.stranded.length}`)
  console.log(`  rows written again after a kill: ${report.rowsWrittenAgain}`)
  return problemsOf({ report, expected, table, ticket, before, watch, endings })
}

const interruption = Promise.withResolvers()
let isInterrupted = false
for (const signal of ['SIGINT', 'SIGTERM'])
  process.on(signal, () => {
    isInterrupted = true
    interruption.resolve([`ended by ${signal}`])
  })

const problems = await Promise.race([main(), interruption.promise]).catch((error) => [
  error.message,
])
await processes.end()
await database.close()
// A failure is left to be looked at.
if (options.keep || (problems.length > 0 && !isInterrupted)) {
  console.log(`  left: ${relative(process.cwd(), folder)}, and ${database.name}`)
} else {
  await database.drop().catch((error) => problems.push(error.message))
  rmSync(folder, { recursive: true, force: true })
}
for (const problem of problems) console.error(`  FAILED: ${problem}`)
process.exit(problems.length === 0 ? 0 : 1)

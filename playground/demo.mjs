// Imports a public data file with two workers, kills one on the way, and checks what came of it.
import { mkdirSync, rmSync } from 'node:fs'
import { join, relative } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { Processes, tailOf } from './demo/processes.mjs'
import { Progress } from './demo/progress.mjs'
import { compare } from './demo/table.mjs'

const { values: options } = parseArgs({
  options: { lines: { type: 'string' }, keep: { type: 'boolean', default: false } },
})
const RUN_ID = 'import'
const WORKERS = ['worker-1', 'worker-2']
/** The share of the lines that have ended when a worker is killed. */
const KILL_AT = 0.4
const STALL_MS = 60_000

const folder = join(import.meta.dirname, 'tmp', 'demo', String(process.pid))
const file = join(folder, 'demo.sqlite3')
const processes = new Processes({
  folder,
  environment: { NODE_ENV: 'production', DB_FILE: file, DURABLE_STORE: 'lucid', LOG_LEVEL: 'info' },
})
const startedAt = performance.now()
const workers = new Map()

function say(text) {
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
  console.log(`${seconds.padStart(6)} s  ${text}`)
}

function startWorker(name, concurrency) {
  const args = ['ace.js', 'durable:work', `--name=${name}`, `--concurrency=${concurrency}`]
  const worker = processes.start(name, [...args, '--json'])
  workers.set(name, worker)
  say(`${name} started, process ${worker.pid}`)
}

async function killAndStartAgain({ name, n }, concurrency) {
  const worker = workers.get(name)
  worker.wasKilled = true
  worker.kill('SIGKILL')
  say(`${name} killed (SIGKILL), process ${worker.pid}, with ${n} runs in its hands`)
  await worker.closed
  startWorker(name, concurrency)
}

function refuseDeadWorkers() {
  for (const worker of workers.values()) {
    if (worker.exitCode === null && worker.signalCode === null) continue
    if (worker.wasKilled) continue
    throw new Error(`${worker.name} ended by itself. Its log ends with:\n${tailOf(worker)}`)
  }
}

/** Watches until the import has ended; kills the busiest worker once on the way. */
async function watch(progress, { lines, concurrency }) {
  let killed = false
  let shownAt = performance.now()
  let shown = 0
  let movedAt = shownAt
  let done = 0
  for (;;) {
    const now = progress.read()
    if (now.done !== done) movedAt = performance.now()
    done = now.done
    const busiest = !killed && done >= lines * KILL_AT && progress.busiest()
    if (busiest && !now.hasEnded) {
      await killAndStartAgain(busiest, concurrency)
      killed = true
    }
    const sinceShown = performance.now() - shownAt
    if (sinceShown >= 1000 || now.hasEnded) {
      const rate = Math.round(((done - shown) / sinceShown) * 1000)
      const statuses = Object.entries(now.byStatus).map(([status, n]) => `${status} ${n}`)
      say(`${done} of ${lines} lines done, ${rate}/s   ${statuses.join(', ')}`)
      shownAt = performance.now()
      shown = done
    }
    if (now.hasEnded) return killed
    refuseDeadWorkers()
    if (performance.now() - movedAt > STALL_MS) throw new Error('No line has ended for a minute')
    await delay(killed ? 100 : 2)
  }
}

async function main() {
  mkdirSync(folder, { recursive: true })
  const linesArgs = options.lines === undefined ? [] : [options.lines]
  const expected = JSON.parse(await processes.run(['scripts/count_lines.mjs', ...linesArgs]))
  const concurrency = Math.max(1, Math.min(50, Math.floor(expected.lines / 20)))
  await processes.run(['ace.js', 'migration:run', '--force'])
  say(`database ${relative(process.cwd(), file)} migrated`)
  await processes.run([
    'ace.js',
    'airports:import',
    `--run-id=${RUN_ID}`,
    ...linesArgs.map((lines) => `--lines=${lines}`),
  ])
  say(`import started: ${expected.lines} lines, one run each`)
  for (const name of WORKERS) startWorker(name, concurrency)

  const progress = new Progress({ file, runId: RUN_ID })
  const killed = await watch(progress, { lines: expected.lines, concurrency })
  progress.close()
  const endings = await processes.stop()
  say(
    `import ended; workers stopped: ${endings.map(({ name, code }) => `${name} exit ${code}`).join(', ')}`
  )

  const report = JSON.parse(await processes.run(['ace.js', 'airports:report', RUN_ID]))
  const table = compare(report.counts, expected)
  console.log(`\n${table.text}\n`)
  console.log(`  import ${report.status}; runs of lines: ${JSON.stringify(report.runs)}`)
  console.log(`  rows written again after the kill: ${report.rowsWrittenAgain}`)
  console.log(
    `  steps recorded twice: ${report.recordedTwice.length}, stranded: ${report.stranded.length}`
  )
  const problems = [
    [!killed, 'the import ended before a worker was killed'],
    [report.status !== 'completed', `the import is ${report.status}`],
    [!table.same, 'the counts differ'],
    [
      report.runs.completed !== report.counts.airports && report.counts.airports > 0,
      'completed runs and rows differ in number',
    ],
    [
      report.runs.failed !== report.counts['failed lines'] && report.counts['failed lines'] > 0,
      'failed runs and counted failures differ in number',
    ],
    [
      report.recordedTwice.length > 0,
      `recorded twice: ${report.recordedTwice.slice(0, 5).join(', ')}`,
    ],
    [report.stranded.length > 0, `stranded: ${JSON.stringify(report.stranded.slice(0, 5))}`],
    [endings.some(({ code }) => code !== 0), 'a worker did not stop cleanly'],
  ]
  return problems.filter(([isOne]) => isOne).map(([, problem]) => problem)
}

for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, () => {
    say(`${signal}: ending the workers`)
    void processes.stop().then(() => process.exit(1))
  })
}

try {
  const problems = await main()
  for (const problem of problems) console.error(`  FAILED: ${problem}`)
  process.exitCode = problems.length > 0 ? 1 : 0
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
  await processes.stop()
}
if (process.exitCode === 0 && !options.keep) rmSync(folder, { recursive: true, force: true })
else console.error(`\n  Database and logs: ${relative(process.cwd(), folder)}`)

import assert from 'node:assert/strict'
import type { PageApplication, RunFacts } from '../page_application.ts'
import { checkHandoff } from './failures.ts'
import { poisonWorkflows, scenarioFiles } from '../supplied_files.ts'
import type { Scenario } from './scenario.ts'

const FILES = {
  ...scenarioFiles.faults,
  'app/workflows/poison_workflows.ts': poisonWorkflows(['other']),
}

/** The lease of a worker unless it is configured. */
const LEASE_MS = 30_000

/** A scenario of one call, which the page names or shows. */
function calling(
  start: string,
  run: Scenario['run'],
  files: Record<string, string> = FILES
): Scenario {
  return {
    covers: ({ kind, code }) => isCall(kind) && code.includes(start),
    files: () => files,
    run,
  }
}

function isCall(kind: string): boolean {
  return kind === 'call' || kind === 'statements'
}

async function failedRun(app: PageApplication): Promise<RunFacts> {
  await app.call('start', 'faulty', { failing: true }, 'faulty-run')
  app.work()
  const run = await app.ended('faulty-run')
  await app.rest()
  assert.equal(run.status, 'failed')
  assert.equal(run.error?.code, 'not_today')
  return run
}

const retryWithInput = calling('engine.retryWithInput(', async (app, { code }) => {
  const isShown = code.includes('originalInput')
  const original = { file: 'a.csv' }
  await app.call('start', 'other', original, 'poisoned')
  app.work()
  const dead = await app.ended('poisoned')
  assert.equal(dead.status, 'dead')
  const corrected = { ...original, fixed: true }
  const started = await app.fragment<{ runId: string }>(
    isShown
      ? { deadRunId: dead.id, originalInput: original }
      : { runId: dead.id, input: corrected, newRunId: 'again' }
  )
  if (isShown) assert.match(started.runId, /^poisoned~retry~[0-9a-f]{8}$/)
  else assert.equal(started.runId, 'again')
  const retried = await app.ended(started.runId)
  assert.equal(retried.status, 'completed')
  assert.deepEqual(retried.output, { read: 'a.csv' })
  assert.deepEqual(retried.input, corrected)
  assert.deepEqual([retried.tags, retried.namespace], [dead.tags, dead.namespace])
  assert.deepEqual(await app.call('getRun', dead.id), dead)
  return [
    `run "poisoned" dead; its retry "${isShown ? 'poisoned~retry~<8 hex>' : 'again'}" completed with the corrected input, same tags; the dead run unchanged`,
  ]
})

const requeue = calling('engine.requeue(', async (app) => {
  const run = await failedRun(app)
  assert.equal(await app.fragment({ runId: run.id }), true)
  app.work({ REPAIRED: 'yes' })
  const again = await app.ended(run.id)
  assert.equal(again.status, 'completed')
  assert.equal(again.output, 'done')
  return ['a failed run was run again, on a worker with the fix, and completed']
})

const recoverIncomplete = calling('engine.recoverIncomplete(', async (app) => {
  await app.call('start', 'other', { file: 'a.csv' }, 'lost')
  await app.workUntilKilled()
  const dueAt = async () => {
    const run = await app.call<RunFacts>('getRun', 'lost')
    return run.dueAt
  }
  // The worker was killed, and its lease has not expired.
  assert.deepEqual(await app.fragment(), { workers: 0, runs: 0 })
  assert.equal(await dueAt(), null)
  await app.call('advanceClock', LEASE_MS + 1_000)
  assert.deepEqual(await app.fragment(), { workers: 1, runs: 1 })
  assert.notEqual(await dueAt(), null)
  return ['the run of a killed worker: left alone under its lease, made due by a pass after it']
})

const unservedOnErrorRoutes = calling('engine.unservedOnErrorRoutes(', async (app) => {
  app.work()
  await app.until('a live worker', async () => {
    const workers = await app.call<{ lost: boolean }[]>('listWorkers')
    return workers.some(({ lost }) => !lost) ? true : undefined
  })
  const routes = await app.fragment<{ workflow: string; code: string; handler: string }[]>()
  assert.equal(routes.length, 1)
  assert.ok(JSON.stringify(routes[0]).includes('misrouted'), JSON.stringify(routes))
  assert.ok(JSON.stringify(routes[0]).includes('nobody'), JSON.stringify(routes))
  return ['names the one route whose handler nobody serves']
})

const fatalError = calling('new FatalError(', async (app) => {
  const given = { message: 'no', code: 'bad', details: { at: [1] } }
  const { message, code, details } = await app.fragment<typeof given>(given)
  assert.deepEqual({ message, code, details }, given)
  return ['carries message, code and details']
})

const all = calling(
  'ctx.all(',
  async (app) => {
    const given = [1, 2, 3].map((n) => ({ n, amount: n === 2 ? -1 : n }))
    await app.call('start', 'calling', { lines: given }, 'file')
    app.work()
    const file = await app.ended('file')
    assert.equal(file.status, 'completed')
    const [good, bad] = [
      { ok: 1, failed: 0 },
      { ok: 0, failed: 1 },
    ]
    assert.deepEqual(file.output, [good, bad, good])
    const rejected = await app.calls('recordRejectedLine')
    assert.deepEqual(rejected, [[{ line: given[1], error: 'the amount is -1' }]])
    return ['three lines, the second one bad: one result per line, in order; the parent completed']
  },
  scenarioFiles.lines
)

const register = calling(
  'engine.register(',
  async (app) => {
    for (const name of ['by-code', 'catch-all']) await app.call('start', name, { of: name }, name)
    app.work()
    for (const [name, tag] of [
      ['by-code', 'not_today'],
      ['catch-all', '*'],
    ] as const) {
      const run = await app.ended(name)
      await checkHandoff(app, { run, handler: 'quarantine', code: 'not_today', tag })
    }
    const executed = await app.calls('fn')
    assert.deepEqual(executed.toSorted(), [
      ['by-code', { of: 'by-code' }],
      ['catch-all', { of: 'catch-all' }],
    ])
    const handled = await app.calls('handler')
    assert.deepEqual(
      handled.map(([name]) => name),
      ['quarantine', 'quarantine']
    )
    return [
      'fn 1x for each of two workflows; its failure routed by its code, and by a route without one, to the handler',
    ]
  },
  { ...scenarioFiles.schemas, ...scenarioFiles.registrations }
)

/** Calls of single methods, by what is called. */
export const calls: readonly Scenario[] = [
  retryWithInput,
  requeue,
  recoverIncomplete,
  unservedOnErrorRoutes,
  fatalError,
  all,
  register,
]

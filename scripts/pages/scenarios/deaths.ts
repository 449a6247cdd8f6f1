import assert from 'node:assert/strict'
import type { Facts } from '../facts.ts'
import type { PageApplication, RunFacts } from '../page_application.ts'
import { poisonWorkflows, scenarioFiles } from '../supplied_files.ts'
import type { Scenario } from './scenario.ts'

interface Death {
  workflow: string
  /** Name of the workflow that takes care of it; null = nobody does. */
  handler: string | null
  /** Whether the snippet itself says what the handler does. */
  isShown: boolean
}

interface Dead extends Death {
  run: RunFacts
  handled: RunFacts | null
}

const OTHER = 'other'

/** Who dies in this scenario, and who must take care of each: the workflow's own handler before that of all. */
function deathsOf({ workflows, startedOnDeath, deadLetterWorkflow }: Facts): Death[] {
  const fallback = startedOnDeath.get('*') ?? deadLetterWorkflow
  const declared = workflows.filter(({ isHandler }) => !isHandler)
  const shown = new Set(workflows.filter(({ isHandler }) => isHandler).map(({ name }) => name))
  const names = new Set([...declared.map(({ name }) => name), ...startedOnDeath.keys(), OTHER])
  names.delete('*')
  return [...names].map((workflow) => {
    const own = declared.find(({ name }) => name === workflow)?.deadLetterWorkflow
    const handler = own ?? startedOnDeath.get(workflow) ?? fallback
    return { workflow, handler, isShown: handler !== null && shown.has(handler) }
  })
}

function undeclared(facts: Facts): string[] {
  const declared = facts.workflows.map(({ name }) => name)
  return deathsOf(facts).flatMap(({ workflow }) => (declared.includes(workflow) ? [] : [workflow]))
}

/** Runs that kill their process, until they are dead and their handlers are done. */
export const deaths: Scenario = {
  covers: ({ kind, text }) => {
    const isAboutDeath = /deadLetter|onDead|maxRecoveryAttempts/.test(text)
    return isAboutDeath && ['config', 'preload', 'workflows', 'property'].includes(kind)
  },

  files: (facts) => ({
    ...scenarioFiles.deaths,
    'app/workflows/poison_workflows.ts': poisonWorkflows(undeclared(facts)),
  }),

  async run(app, facts) {
    const cap = facts.maxRecoveryAttempts ?? 1
    const dead: Dead[] = []
    const expected = deathsOf(facts)
    for (const { workflow } of expected)
      await app.call('start', workflow, { file: `${workflow}.csv` }, `run-of-${workflow}`)
    app.work()
    for (const death of expected) {
      const run = await app.ended(`run-of-${death.workflow}`)
      const handled = death.handler === null ? null : await app.ended(`dlq:${run.id}`)
      dead.push({ ...death, run, handled })
    }
    const said: string[] = []
    for (const each of dead) said.push(...(await checkDeath(app, { each, cap })))
    said.push(...(await checkServices(app, { dead, code: facts.code })))
    return said
  },
}

async function checkDeath(
  app: PageApplication,
  { each, cap }: { each: Dead; cap: number }
): Promise<string[]> {
  const { run, handler, handled } = each
  assert.equal(run.status, 'dead')
  assert.equal(run.error?.code, 'max_recovery_attempts')
  assert.match(run.error.message, /supplied\.poison/)
  const starts = (await app.calls('poison')).filter(([runId]) => runId === run.id)
  assert.ok(
    starts.length >= 1 && starts.length <= cap + 1,
    `it was executed ${starts.length} times`
  )
  // Beside others it may also be counted for one of their kills, before the cap makes each run alone.
  if (app.kills === starts.length) assert.equal(starts.length, cap + 1)
  const died = `"${run.workflow}" dead by max_recovery_attempts after ${starts.length} kills, cap ${cap}`
  if (handler === null) {
    assert.equal(await app.call('getRun', `dlq:${run.id}`), null)
    return [`${died}, routed to nobody`]
  }
  assert.equal(handled?.workflow, handler)
  assert.equal(handled.status, 'completed')
  const { workflow = run.workflow, ...letter } = handled.input as Record<string, unknown>
  assert.equal(workflow, run.workflow)
  assert.deepEqual(letter, { deadRunId: run.id, input: run.input, error: run.error })
  if (!each.isShown) {
    const notes = (await app.calls('handler')).filter(([name, input]) => {
      return name === handler && (input as { deadRunId: string }).deadRunId === run.id
    })
    assert.deepEqual(notes, [[handler, handled.input]])
  }
  return [
    `${died}; run "dlq:${run.id}" of "${handler}" completed, its input { ${Object.keys(handled.input as object).join(', ')} }`,
  ]
}

/** That each service which the snippet calls was called once for each run that it is to be called for. */
async function checkServices(
  app: PageApplication,
  { dead, code }: { dead: Dead[]; code: string }
): Promise<string[]> {
  const said: string[] = []
  const shown = dead.filter(({ isShown }) => isShown)
  if (code.includes('alerts.page')) {
    const pages = await app.calls('alerts.page')
    const wanted = shown.map(({ run }) => [
      code.includes('this.alerts.page')
        ? { runId: run.id, workflow: run.workflow }
        : { runId: run.id, error: run.error?.message },
    ])
    assert.deepEqual(sorted(pages), sorted(wanted))
    said.push(`alerts.page called ${pages.length}x with ${keysOf(pages)}`)
  }
  if (code.includes('tickets.create')) {
    const created = await app.calls('tickets.create')
    const payloads = created.map(([ticket]) => (ticket as { payload: unknown }).payload)
    assert.deepEqual(sorted(payloads), sorted(shown.map(({ run }) => run.input)))
    for (const [ticket] of created) {
      const { title } = ticket as { title?: string }
      if (title === undefined) continue
      const named = shown.some(({ run }) => title.includes(run.id) && title.includes(run.workflow))
      assert.ok(named, title)
    }
    for (const { handled } of shown) assert.deepEqual(handled?.output, { ticketId: 'ticket-1' })
    said.push(
      `tickets.create called ${created.length}x with ${keysOf(created)}; output { ticketId }`
    )
  }
  if (code.includes('pager.alert')) {
    const wanted = dead.map(({ run }) => ({ runId: run.id, workflow: run.workflow }))
    const alarms = await app.until('the pager', async () => {
      const found = await app.calls('pager.alert')
      return found.length >= wanted.length ? found : undefined
    })
    assert.deepEqual(sorted(alarms.map(([, facts]) => facts)), sorted(wanted))
    for (const [topic] of alarms)
      assert.ok(typeof topic === 'string' && code.includes(`'${topic}'`))
    said.push(
      `onDead listener: pager.alert called ${alarms.length}x with topic and ${keysOf(alarms.map(([, facts]) => [facts]))}`
    )
  }
  if (code.includes('logger.error')) {
    for (const { run } of dead) {
      const lines = app.output.split('\n').filter((line) => line.includes('"level":50'))
      const line = lines.filter((text) =>
        [run.id, run.workflow, JSON.stringify(run.error?.message).slice(1, -1)].every((word) =>
          text.includes(word)
        )
      )
      assert.equal(line.length, 1, app.output)
    }
    said.push('logger.error wrote run, workflow and message')
  }
  return said
}

function sorted(values: readonly unknown[]): unknown[] {
  return values.toSorted((a, b) => JSON.stringify(a).localeCompare(JSON.stringify(b)))
}

function keysOf([first]: readonly unknown[][]): string {
  return `{ ${Object.keys(Object(first?.[0])).join(', ')} }`
}

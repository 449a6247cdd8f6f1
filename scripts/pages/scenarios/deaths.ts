import assert from 'node:assert/strict'
import type { Facts } from '../facts.ts'
import type { PageApplication } from '../page_application.ts'
import { poisonWorkflows, scenarioFiles } from '../supplied_files.ts'
import { checkServices, type Dead, type Death } from './dead_letter_services.ts'
import type { Scenario } from './scenario.ts'

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
    app.work()
    // One after the other: beside another, a run is counted for the kills of that one too.
    for (const death of expected) {
      const id = `run-of-${death.workflow}`
      await app.call('start', death.workflow, { file: `${death.workflow}.csv` }, id)
      const run = await app.ended(id)
      const handled = death.handler === null ? null : await app.ended(`dlq:${id}`)
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
  const executed = await app.calls('poison')
  const starts = executed.filter(([runId]) => runId === run.id)
  assert.equal(starts.length, cap + 1)
  const died = `"${run.workflow}" dead by max_recovery_attempts at cap ${cap}, executed and killed ${starts.length}x`
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
    const noted = await app.calls('handler')
    const notes = noted.filter(([name, input]) => {
      return name === handler && (input as { deadRunId: string }).deadRunId === run.id
    })
    assert.deepEqual(notes, [[handler, handled.input]])
  }
  return [
    `${died}; run "dlq:${run.id}" of "${handler}" completed, its input { ${Object.keys(handled.input as object).join(', ')} }`,
  ]
}

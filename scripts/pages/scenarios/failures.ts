import assert from 'node:assert/strict'
import { scenarioFiles } from '../supplied_files.ts'
import type { RunFacts } from '../page_application.ts'
import type { Scenario } from './scenario.ts'

const GOOD = { n: 1, amount: 10 }
const BAD = { n: 2, amount: -5 }

/** Checks that `run` followed a handler run, and what that one got. Resolves to the handler run. */
export async function checkHandoff(
  app: { call: <T>(method: string, ...args: unknown[]) => Promise<T> },
  params: { run: RunFacts; handler: string; code: string; tag?: string }
): Promise<RunFacts> {
  const { run, handler, code, tag = code } = params
  const handled = await app.call<RunFacts>('getRun', `${run.id}.onError.0`)
  assert.equal(handled.workflow, handler)
  assert.equal(handled.status, 'completed')
  assert.equal(run.status, 'completed')
  assert.deepEqual(run.output, handled.output)
  assert.deepEqual(run.tags, [`onError:${tag}`])
  const { error, ...rest } = handled.input as { error: { code: string; message: string } }
  assert.deepEqual(rest, { runId: run.id, workflow: run.workflow, input: run.input })
  assert.equal(error.code, code)
  return handled
}

/** A workflow of lines: a good one, and a bad one whose failure is routed. */
export const lines: Scenario = {
  covers: ({ kind, text }) =>
    kind === 'workflows' && text.includes('onError:') && text.includes('validateLine'),

  files: () => scenarioFiles.lines,

  async run(app, { workflows }) {
    const routed = workflows.find(({ onError }) => onError.length > 0)!
    const [route] = routed.onError
    assert.ok(route)
    await app.call('start', routed.name, GOOD, 'good')
    await app.call('start', routed.name, BAD, 'bad')
    app.work()
    const [good, bad] = [await app.ended('good'), await app.ended('bad')]
    assert.equal(good.status, 'completed')
    assert.deepEqual(
      [good.output, bad.output],
      [
        { ok: 1, failed: 0 },
        { ok: 0, failed: 1 },
      ]
    )
    const handled = await checkHandoff(app, {
      run: bad,
      handler: route.workflow,
      code: 'invalid_line',
    })
    const { error } = handled.input as { error: { message: string } }
    assert.equal(error.message, 'the amount is -5')
    const validated = await app.calls('validateLine')
    assert.equal(validated.length, 2, 'a fatal failure is not retried')
    assert.deepEqual(validated.map(([line]) => (line as typeof GOOD).n).toSorted(), [1, 2])
    assert.deepEqual(await app.calls('ingestLine'), [[GOOD]])
    const rejected = [[{ line: BAD, error: error.message }]]
    assert.deepEqual(await app.calls('recordRejectedLine'), rejected)
    return [
      `"${routed.name}": good line { ok: 1 }, bad line routed by invalid_line to "${route.workflow}", settled with its output { failed: 1 }`,
      'validateLine 2x, ingestLine 1x with the good line, recordRejectedLine 1x with { line, error }',
    ]
  },
}

/** A fragment of a step that throws an error with details. */
export const details: Scenario = {
  covers: ({ kind, text }) => kind === 'statements' && text.includes('throw new'),

  files: () => ({ ...scenarioFiles.details }),

  async run(app) {
    await app.call('start', 'checked-line', GOOD, 'good')
    await app.call('start', 'checked-line', BAD, 'bad')
    app.work()
    const [good, bad] = [await app.ended('good'), await app.ended('bad')]
    assert.deepEqual([good.output, bad.output], ['accepted', 'rejected'])
    const params = { run: bad, handler: 'details-handler', code: 'invalid_line' }
    const handled = await checkHandoff(app, params)
    const { error } = handled.input as { error: { message: string; details: unknown } }
    assert.deepEqual(error.details, [{ path: ['amount'], message: 'is negative' }])
    assert.match(error.message, /\b2\b/)
    assert.deepEqual(await app.calls('handler'), [['details-handler', handled.input]])
    const parsings = await app.calls('LineSchema.safeParse')
    const parsed = parsings.map(([line]) => line as typeof GOOD)
    assert.deepEqual(parsed.map(({ n }) => n).toSorted(), [1, 2])
    return [
      'good line accepted, bad line thrown as fatal (not retried) and routed by invalid_line',
      'LineSchema.safeParse 2x with the lines; the handler got error.details = the issues of the schema',
    ]
  },
}

/** Routes for schema failures, as an option of a workflow whose step has schemas. */
export const schemas: Scenario = {
  covers: ({ kind, text }) => kind === 'property' && text.includes('SchemaValidationError'),

  files: () => scenarioFiles.schemas,

  async run(app, { workflows }) {
    const [{ onError } = { onError: [] }] = workflows.filter(({ name }) => name === 'property')
    const byCode = new Map(onError.map(({ code, workflow }) => [code, workflow]))
    const inputs = {
      invalid_output: { ask: 'price', answer: '' },
      invalid_input: { ask: '', answer: '7' },
      none: { ask: 'price', answer: '7' },
    }
    for (const [id, input] of Object.entries(inputs)) await app.call('start', 'property', input, id)
    app.work()
    const said: string[] = []
    for (const code of ['invalid_output', 'invalid_input']) {
      const run = await app.ended(code)
      const handler = byCode.get(code) ?? byCode.get('SchemaValidationError') ?? ''
      const tag = byCode.has(code) ? code : 'schema_validation'
      const handled = await checkHandoff(app, { run, handler, code, tag })
      const { error } = handled.input as { error: { details: { message: string }[] } }
      assert.match(error.details[0]?.message ?? '', /is empty/)
      const noted = await app.calls('handler')
      const own = noted.filter(([name]) => name === handler)
      assert.deepEqual(own, [[handler, handled.input]])
      said.push(
        `${code} routed to "${handler}" (onError:${tag}), called once with the issues as details`
      )
    }
    const unharmed = await app.ended('none')
    assert.equal(unharmed.status, 'completed')
    return [...said, 'no failure, no handler']
  },
}

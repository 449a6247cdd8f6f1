import type { StandardSchemaV1 } from '@standard-schema/spec'
import { test } from '@japa/runner'
import vine from '@vinejs/vine'
import { BaseWorkflow } from '../../src/base_workflow.ts'
import { internalsOf } from '../../src/engine/engine.ts'
import { FatalError, SchemaValidationError } from '../../src/errors.ts'
import type { WorkflowCtx } from '../../src/types/context.ts'
import type { OnErrorInput } from '../../src/types/workflow.ts'
import { Stage } from '../support/stage.ts'
import { DurableApp } from '../support/durable_app.ts'
import { KINDS, onEach } from '../stores/databases.ts'
import { reaches } from '../support/reaches.ts'

const MAIN = { name: 'main' }

/** Makes numbers and dates of the texts that are given for them. */
const coercing: StandardSchemaV1 = {
  '~standard': {
    version: 1,
    vendor: 'test',
    async validate(given) {
      const value = { ...(given as Record<string, unknown>) }
      if ('total' in value) value.total = Number(value.total)
      if ('due' in value) value.due = new Date(String(value.due))
      return { value }
    },
  },
}

onEach(KINDS, (kind) =>
  test.group(`Search attributes (${kind})`, (group) => {
    let stage: Stage
    group.each.setup(async () => {
      stage = await Stage.on(kind)
      return () => stage.close()
    })

    test('OE-21: a rejected write of search attributes goes to the route for SchemaValidationError', async ({
      assert,
    }) => {
      const app = await stage.app()
      const { engine } = app
      const given: OnErrorInput[] = []
      engine.register(
        'main',
        '1',
        async (ctx) => {
          await ctx.upsertSearchAttributes({ customer: 'acme', total: 'many' })
        },
        {
          searchAttributes: vine.create({ customer: vine.string(), total: vine.number() }),
          onError: [
            { code: 'invalid_input', workflow: 'rest' },
            { code: SchemaValidationError, workflow: 'quarantine' },
            { workflow: 'rest' },
          ],
        }
      )
      engine.register('rest', '1', async () => 'rest')
      engine.register('quarantine', '1', async (_, failure: OnErrorInput) => {
        given.push(failure)
        return 'quarantined'
      })
      await app.work()
      const handle = await engine.start(MAIN, null, 'r')
      assert.equal(await handle.result(), 'quarantined')
      const message =
        'The search attributes do not fit their schema at total: The total field must be a number'
      assert.equal(given[0]?.error.code, 'schema_validation')
      assert.equal(given[0]?.error.message, message)
      assert.deepInclude((given[0]?.error.details as unknown[])[0], { field: 'total' })
      const run = await engine.getRun('r')
      assert.deepEqual([run?.attributes, run?.tags], [{}, ['onError:schema_validation']])
    })

    test('they are stored with the run as the schema gives them back, replaced by name, and survive a restart', async ({
      assert,
    }) => {
      const registerOn = ({ engine }: DurableApp) =>
        engine.register(
          'main',
          '1',
          async (ctx) => {
            const values: Record<string, string | boolean> = {
              customer: 'acme',
              total: '12',
              due: '2030-01-31',
              isPaid: false,
            }
            const first = ctx.upsertSearchAttributes(values)
            values.customer = 'changed after the call'
            await first
            await ctx.upsertSearchAttributes({ total: 13 })
            await ctx.waitForSignal('go')
            await ctx.upsertSearchAttributes({ isPaid: true })
          },
          {
            searchAttributes: coercing,
          }
        )
      const first = await stage.app()
      registerOn(first)
      await first.work()
      await first.engine.start(MAIN, null, 'r')
      await reaches(stage.store, 'r', 'suspended')
      const before = await first.engine.getRun('r')
      const due = '2030-01-31T00:00:00.000Z'
      const stored = { customer: 'acme', due, isPaid: false, total: 13 }
      assert.deepEqual(before?.attributes, stored)
      await first.close()

      const second = await stage.app()
      registerOn(second)
      await second.work()
      await second.engine.signal('go')
      const run = await second.engine.waitForRun('r')
      assert.equal(run.status, 'completed')
      assert.deepEqual(run.attributes, { ...stored, isPaid: true })
    })

    test('runs are listed by them, by their type too, beside other filters and by page', async ({
      assert,
    }) => {
      const app = await stage.app()
      const { engine } = app
      engine.register('main', '1', async (ctx, values: Record<string, string | number>) => {
        await ctx.upsertSearchAttributes({ ...values, at: new Date(0) })
      })
      await app.work()
      const inputs = {
        a: { customer: 'acme', total: 1 },
        b: { customer: 'acme', total: 2 },
        c: { customer: 'other', total: 1 },
        d: { customer: 'acme', total: '1' },
      }
      for (const [runId, input] of Object.entries(inputs)) {
        await engine.start(MAIN, input, runId, { tags: [`of-${runId}`] })
        await engine.waitForRun(runId)
      }
      const idsOf = async (query: Parameters<typeof engine.listRuns>[0]) => {
        const { runs } = await engine.listRuns(query)
        return runs.map(({ id }) => id).sort()
      }
      assert.deepEqual(await idsOf({ attributes: { customer: 'acme' } }), ['a', 'b', 'd'])
      assert.deepEqual(await idsOf({ attributes: { customer: 'acme', total: 1 } }), ['a'])
      assert.deepEqual(await idsOf({ attributes: { total: '1' } }), ['d'])
      assert.deepEqual(await idsOf({ attributes: { at: new Date(0) }, tag: 'of-c' }), ['c'])
      assert.deepEqual(await idsOf({ attributes: { customer: 'nobody' } }), [])
      const page = await engine.listRuns({ attributes: { customer: 'acme' }, limit: 2 })
      const rest = await idsOf({ attributes: { customer: 'acme' }, after: page.next ?? undefined })
      assert.lengthOf(page.runs, 2)
      assert.lengthOf(rest, 1)
    })

    test('what cannot be stored is rejected without a schema too, and may be caught', async ({
      assert,
    }) => {
      const app = await stage.app()
      const { engine } = app
      const caught: FatalError[] = []
      engine.register('main', '1', async (ctx) => {
        for (const values of [
          { nested: { a: 1 } },
          { 'two words': 1 },
          { long: 'x'.repeat(600) },
          { total: Number.NaN, list: [1] },
          'customer',
        ])
          await ctx
            .upsertSearchAttributes(values as never)
            .catch((error: FatalError) => void caught.push(error))
        await ctx.upsertSearchAttributes({ customer: 'acme', note: 'late' })
        await ctx.upsertSearchAttributes({ note: null, unknown: null })
      })
      await app.work()
      await engine.start(MAIN, null, 'r')
      const run = await engine.waitForRun('r')
      assert.deepEqual([run.status, run.attributes], ['completed', { customer: 'acme' }])
      assert.deepEqual(
        caught.map(({ code }) => code),
        Array(5).fill('schema_validation')
      )
      const paths = caught.map(({ details }) =>
        (details as { path?: string[] }[]).map(({ path }) => path?.[0])
      )
      assert.deepEqual(paths, [['nested'], ['two words'], ['long'], ['total', 'list'], [undefined]])
    })

    test('they stay when the run is requeued, and are replaced by what its body sets then', async ({
      assert,
    }) => {
      const app = await stage.app()
      const { engine } = app
      let round = 0
      engine.register('main', '1', async (ctx) => {
        const current = await ctx.localStep('round', () => ++round)
        await ctx.upsertSearchAttributes({ round: current, [`of-${current}`]: true })
        if (current === 1) throw new FatalError('once', 'once')
      })
      await app.work()
      await engine.start(MAIN, null, 'r')
      await engine.waitForRun('r')
      round = 1
      await engine.requeue('r')
      const run = await engine.waitForRun('r')
      assert.deepInclude(run.attributes, { 'of-1': true })
      assert.deepEqual(await engine.findStranded(), [])
    })
  })
)

test.group('Search attributes | registration', () => {
  test('what is no schema is refused, in register() and in static workflow', ({ assert }) => {
    const { engine } = new DurableApp()
    const searchAttributes = { customer: 'string' } as never
    const refused = /"searchAttributes" of workflow "main" is not a Standard Schema/
    assert.throws(() => engine.register('main', '1', async () => {}, { searchAttributes }), refused)
    class Main extends BaseWorkflow {
      static override workflow = { name: 'main', searchAttributes }
      async run(_: WorkflowCtx) {}
    }
    assert.throws(() => internalsOf(engine).naming.workflow(Main), refused)
  })
})

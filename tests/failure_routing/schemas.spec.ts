import type { StandardSchemaV1 } from '@standard-schema/spec'
import { test } from '@japa/runner'
import vine from '@vinejs/vine'
import type { Infer } from '@vinejs/vine/types'
import { BaseWorkflow } from '../../src/base_workflow.ts'
import { internalsOf, type WorkflowEngine } from '../../src/engine/engine.ts'
import { SchemaValidationError } from '../../src/errors.ts'
import { defineStep } from '../../src/step.ts'
import type { WorkflowCtx } from '../../src/types/context.ts'
import type { FailureRoute, OnErrorInput } from '../../src/types/workflow.ts'
import { DurableApp } from '../support/durable_app.ts'
import { Stage } from '../support/stage.ts'
import { KINDS, onEach } from '../stores/databases.ts'
import { reaches } from '../support/reaches.ts'
import { storedRun } from '../support/stored_run.ts'

/** Parses a date, and so refuses what it has parsed. */
const shipment = vine.create({
  ship: vine.date(),
  lines: vine.array(vine.object({ n: vine.number() })),
})
const RAW = { ship: '2030-01-31', lines: [{ n: '7' }] }

/** A schema that is no VineJS: a number, doubled each time it is parsed. */
const doubled: StandardSchemaV1<unknown, number> = {
  '~standard': {
    version: 1,
    vendor: 'test',
    validate: (value) =>
      typeof value === 'number'
        ? { value: value * 2 }
        : { issues: [{ message: 'no number', path: [{ key: 'n' }, 0] }] },
  },
}

const ship = defineStep('schemas.ship', async (input: { ship: Date }) => input.ship.getFullYear(), {
  input: shipment,
})
const doubling = defineStep('schemas.doubling', async (input: unknown) => input as number, {
  input: doubled,
  output: doubled,
})

/** Registers a workflow with these routes, each to a handler of its own name that keeps what it is given. */
function registerRouted(
  engine: WorkflowEngine,
  params: {
    routes: Record<string, FailureRoute['code']>
    body: (ctx: WorkflowCtx, input: never) => Promise<unknown>
    input?: StandardSchemaV1
  }
) {
  const given: OnErrorInput[] = []
  const onError = Object.entries(params.routes).map(([workflow, code]) => ({ workflow, code }))
  engine.register('main', '1', params.body, { onError, input: params.input as never })
  for (const { workflow } of onError)
    engine.register(workflow, '1', async (_, failure: OnErrorInput) => {
      given.push(failure)
      return workflow
    })
  return given
}

const MAIN = { name: 'main' }

onEach(KINDS, (kind) =>
  test.group(`Failure routes | schemas (${kind})`, (group) => {
    let stage: Stage
    group.each.setup(async () => {
      stage = await Stage.on(kind)
      return () => stage.close()
    })

    const exact = { bad_input: 'invalid_input', bad_output: 'invalid_output', rest: undefined }
    const byClass = { rest: undefined, schema: SchemaValidationError }
    const bodies = {
      'the input of a step': (ctx: WorkflowCtx) => ctx.step(doubling, 'seven'),
      'the output of a step': (ctx: WorkflowCtx) => ctx.step('schemas.wordy', 7),
      'the input of the workflow': async () => 'never reached',
    }
    for (const [what, body] of Object.entries(bodies)) {
      const isOutput = what.includes('output')
      const code = isOutput ? 'invalid_output' : 'invalid_input'
      for (const [routes, handler] of [
        [exact, isOutput ? 'bad_output' : 'bad_input'],
        [byClass, 'schema'],
      ] as const)
        test(`OE-20, OE-21: what does not fit the schema of ${what} goes to the route for ${handler === 'schema' ? 'SchemaValidationError' : code}`, async ({
          assert,
        }) => {
          const app = await stage.app()
          const { engine } = app
          app.registry.registerStep({
            name: 'schemas.wordy',
            options: { output: doubled },
            file: null,
            run: () => 'words',
          })
          const isWorkflow = what.includes('workflow')
          const given = registerRouted(engine, {
            routes,
            body,
            ...(isWorkflow && { input: doubled }),
          })
          await app.work()
          const handle = await engine.start(MAIN, 'seven', 'r')
          assert.equal(await handle.result(), handler)
          const [failure] = given
          assert.equal(failure?.error.code, code)
          assert.equal(failure?.input, 'seven')
          assert.deepEqual(failure?.error.details, [
            { message: 'no number', path: [{ key: 'n' }, 0] },
          ])
          const where = isOutput ? 'output' : 'input'
          assert.equal(
            failure?.error.message,
            `The ${where} does not fit its schema at n.0: no number`
          )
          const { records } = (await engine.getHistory('r'))!
          const steps = records.filter(({ kind: operation }) => operation === 'step')
          assert.deepEqual(
            steps.map(({ attempts }) => attempts),
            isWorkflow ? [] : [1]
          )
        })
    }

    test('OE-22: a VineJS validator parses the stored input of each turn, and never what it has parsed', async ({
      assert,
    }) => {
      const app = await stage.app()
      const { engine } = app
      const seen: unknown[] = []
      engine.register(
        'main',
        '1',
        async (ctx, input) => {
          seen.push(input.ship)
          const year = await ctx.step(ship, RAW as never)
          await ctx.waitForSignal('go')
          return [year, input.lines[0]?.n]
        },
        { input: shipment }
      )
      const first = await app.work()
      const handle = await engine.start(MAIN, RAW, 'r')
      await reaches(stage.store, 'r', 'suspended')
      await first.stop()
      await app.work()
      await engine.signal('go')
      assert.deepEqual(await handle.result(), [2030, 7])
      assert.lengthOf(seen, 2)
      for (const date of seen) assert.instanceOf(date, Date)
      const run = await engine.getRun('r')
      assert.deepEqual(run?.input, RAW)
    })

    test('OE-22: the issues of a VineJS validator are the details, for steps and workflows', async ({
      assert,
    }) => {
      const app = await stage.app()
      const { engine } = app
      const bad = { ship: '2030-01-31', lines: [{ n: 'x' }] }
      const details = [
        {
          message: 'The n field must be a number',
          rule: 'number',
          field: 'lines.0.n',
          path: 'lines.0.n',
        },
      ]
      const inStep = registerRouted(engine, {
        routes: { handler: 'invalid_input' },
        body: (ctx) => ctx.step(ship, bad as never),
      })
      await app.work()
      const handle = await engine.start(MAIN, null)
      await handle.result()
      const message = 'The input does not fit its schema at lines.0.n: The n field must be a number'
      assert.deepEqual(inStep[0]?.error, { message, code: 'invalid_input', details })
      engine.register('strict', '1', async () => {}, { input: shipment })
      const { runId } = await engine.start({ name: 'strict' }, bad)
      const run = await engine.waitForRun(runId)
      assert.deepInclude(run.error, { message, code: 'invalid_input', details })
    })

    test('OE-22: a workflow class has its schema in static workflow', async ({ assert }) => {
      class Shipping extends BaseWorkflow {
        static override workflow = { name: 'schemas.shipping', input: shipment }
        async run(_: WorkflowCtx, input: Infer<typeof shipment>) {
          return input.ship.getFullYear()
        }
      }
      const app = await stage.app()
      await app.work()
      const handle = await app.engine.start(Shipping, RAW as never)
      assert.equal(await handle.result(), 2030)
      const { runId } = await app.engine.start(Shipping, { ship: 'tomorrow' } as never)
      const run = await app.engine.waitForRun(runId)
      assert.equal(run.errorCode, 'invalid_input')
    })

    test('OE-22: the parsed value reaches the step once, and its parsed output the body and the history', async ({
      assert,
    }) => {
      const app = await stage.app()
      const { engine } = app
      engine.register(
        'main',
        '1',
        async (ctx, n) => {
          const result = await ctx.step(doubling, n)
          await ctx.waitForSignal('go')
          return [n, result]
        },
        { input: doubled }
      )
      const first = await app.work()
      const handle = await engine.start(MAIN, 1, 'r')
      await reaches(stage.store, 'r', 'suspended')
      await first.stop()
      await app.work()
      await engine.signal('go')
      assert.deepEqual(await handle.result(), [2, 8])
    })

    test('OE-20: an input that no longer fits when a later turn begins fails the run, once its steps are undone', async ({
      assert,
    }) => {
      const undone: number[] = []
      const body = async (ctx: WorkflowCtx) => {
        await ctx.localStep('charge', () => 12, { compensate: (sum) => void undone.push(sum) })
        await ctx.waitForSignal('go')
      }
      const before = await stage.app()
      registerRouted(before.engine, { routes: {}, body })
      await before.work()
      await before.engine.start(MAIN, 'seven', 'r')
      await reaches(stage.store, 'r', 'suspended')
      await before.close()

      const after = await stage.app()
      const given = registerRouted(after.engine, {
        routes: { handler: SchemaValidationError },
        body,
        input: doubled,
      })
      await after.work()
      await after.engine.signal('go', 'kept')
      const run = await after.engine.waitForRun('r')
      assert.equal(run.output, 'handler')
      assert.deepEqual(undone, [12])
      assert.equal(given[0]?.error.code, 'invalid_input')
      assert.deepEqual(await after.engine.findStranded(), [])
    })

    test('OE-22: issues that cannot be stored are reduced to what they say', async ({ assert }) => {
      class Issue {
        message = 'odd'
        path = ['a', 1]
        retry = () => 1
      }
      const app = await stage.app()
      const { engine } = app
      engine.register('main', '1', async () => {}, {
        input: {
          '~standard': {
            version: 1,
            vendor: 'test',
            validate: async () => ({ issues: [new Issue()] }),
          },
        },
      })
      await app.work()
      await engine.start(MAIN, null, 'r')
      const run = await engine.waitForRun('r')
      assert.deepEqual(run.error?.details, [{ message: 'odd', path: 'a.1' }])
    })
  })
)

test.group('Failure routes | what is no schema', () => {
  const refused =
    /not a Standard Schema\. Pass a Zod, .* vine\.create\(\) or vine\.compile\(\) returns/

  test('OE-22: it is refused at registration with the fix', ({ assert }) => {
    const { engine } = new DurableApp()
    for (const input of [vine.object({}), { n: 'number' }, () => true, null]) {
      assert.throws(
        () => engine.register('main', '1', async () => {}, { input: input as never }),
        refused
      )
      assert.throws(
        () => defineStep('schemas.refused', async () => {}, { output: input as never }),
        refused
      )
    }
    assert.isUndefined(internalsOf(engine).registry.workflow('main'))
    class Wrong extends BaseWorkflow {
      static override workflow = { name: 'schemas.wrong', input: vine.object({}) as never }
      async run() {}
    }
    assert.throws(() => internalsOf(engine).naming.workflow(Wrong), refused)
  })

  test('an input that cannot be read fails its run unrouted where it cannot be handed on', async ({
    assert,
  }) => {
    const stage = await Stage.on('memory')
    const app = await stage.app()
    const { engine } = app
    registerRouted(engine, { routes: { handler: undefined }, body: async () => 'never' })
    const reasons: string[] = []
    engine.on('run.unrouted', ({ reason }) => reasons.push(reason))
    await stage.store.commit([storedRun('main', { id: 'unreadable', input: 'no payload' })])
    await app.work()
    const failed = await engine.waitForRun('unreadable')
    assert.equal(failed.status, 'failed')
    assert.match(reasons[0] ?? '', /cannot be followed: Cannot read a stored payload/)
    await stage.close()
  })
})

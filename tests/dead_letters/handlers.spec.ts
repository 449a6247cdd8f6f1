import type { WorkflowClass } from '../../src/types/workflow.ts'
import { test } from '@japa/runner'
import { BaseWorkflow, workflowRef } from '../../src/base_workflow.ts'
import { workflowDefinitions } from '../../src/engine/workflow_class.ts'
import type { WorkflowEngine } from '../../src/engine/engine.ts'
import type { WorkflowCtx } from '../../src/types/context.ts'
import type { DeadLetter, LazyWorkflowTarget } from '../../src/types/workflow.ts'
import type { DurableApp } from '../support/durable_app.ts'
import { KINDS, onEach } from '../stores/databases.ts'
import { storedRun } from '../support/stored_run.ts'
import { Stage } from '../support/stage.ts'

const HANDLER = { name: 'handler', version: '1' }

class Alerts {
  readonly paged: unknown[] = []
}

/** Its services come through the constructor, as the container gives them. */
class Pipeline extends BaseWorkflow {
  static override workflow = { name: 'pipeline', version: '1' }

  constructor(private alerts: Alerts) {
    super()
  }

  async run(ctx: WorkflowCtx, input: { lines: number }) {
    return ctx.localStep('work', () => input.lines)
  }

  override async deadLetter(ctx: WorkflowCtx, dead: DeadLetter<{ lines: number }>) {
    await ctx.localStep('page', () => void this.alerts.paged.push([ctx.runId, dead]))
    return { lines: dead.input.lines }
  }
}

function registerClass(app: DurableApp, target: WorkflowClass, alerts = new Alerts()): Alerts {
  const definitions = workflowDefinitions(target, {
    maker: { make: async (wanted) => new (wanted as new (given: Alerts) => object)(alerts) },
    logger: app.log,
    origin: 'shop',
    inDevelopment: false,
  })
  for (const definition of definitions) app.registry.registerWorkflow(definition)
  return alerts
}

/** Registers a handler that keeps what it was given. */
function registerHandler(engine: WorkflowEngine, name = 'handler'): DeadLetter[] {
  const letters: DeadLetter[] = []
  engine.register(name, '1', (ctx, letter: DeadLetter) =>
    ctx.localStep('handle', () => void letters.push(letter))
  )
  return letters
}

onEach(KINDS, (kind) =>
  test.group(`Handlers of dead runs (${kind})`, (group) => {
    let stage: Stage
    group.each.setup(async () => {
      stage = await Stage.on(kind)
      return () => stage.close()
    })

    /** A function workflow `poison`, dead as run `r`, and its handler run where there is one. */
    async function die(
      app: DurableApp,
      params: { deadLetterWorkflow?: LazyWorkflowTarget; id?: string } = {}
    ) {
      const { id = 'r', ...options } = params
      const body = async () => 'never'
      const ref = app.engine.register('poison', '1', body, options)
      await app.engine.start(ref, { lines: 3 }, id)
      await stage.loseBeyondCap('poison')
      const worker = await app.work()
      const run = await app.engine.waitForRun(id)
      return { run, worker }
    }

    test('DL-20, DL-25: deadLetter() of a class is the workflow <name>.dlq of the same version and origin, on an instance with its services', async ({
      assert,
    }) => {
      const app = await stage.app()
      const alerts = registerClass(app, Pipeline)
      const handler = app.registry.workflow('pipeline.dlq', '1')
      assert.equal(handler?.origin, 'shop')
      await app.engine.start(Pipeline, { lines: 3 }, 'r')
      await stage.loseBeyondCap('pipeline')
      await app.work()
      const dead = await app.engine.waitForRun('r')
      const handled = await stage.handled(app.engine)
      assert.equal(handled.workflow, 'pipeline.dlq')
      assert.equal(handled.version, '1')
      assert.equal(handled.origin, 'shop')
      assert.deepEqual(handled.output, { lines: 3 })
      const letter = {
        deadRunId: 'r',
        workflow: 'pipeline',
        input: { lines: 3 },
        error: dead.error,
      }
      assert.deepEqual(alerts.paged, [['dlq:r', letter]])
      assert.deepEqual(handled.input, letter)
      const history = await app.engine.getHistory('dlq:r')
      assert.deepEqual(
        history?.records.map(({ name }) => name),
        ['page']
      )
      assert.deepEqual(await app.engine.findStranded(), [])
    })

    const forms: Record<string, LazyWorkflowTarget> = {
      'a name': 'handler',
      'a ref': workflowRef('handler', '1'),
      'a ref without a version': workflowRef('handler'),
      'a function returning a name': () => 'handler',
      'a function returning a ref': async () => workflowRef('handler', '1'),
    }
    for (const [form, target] of Object.entries(forms))
      test(`DL-21: deadLetterWorkflow of engine.register takes ${form}`, async ({ assert }) => {
        const app = await stage.app()
        const letters = registerHandler(app.engine)
        await die(app, { deadLetterWorkflow: target })
        await stage.handled(app.engine)
        assert.lengthOf(letters, 1)
      })

    test('DL-21: deadLetterWorkflow of a class takes a class, and a function returning a module of one', async ({
      assert,
    }) => {
      const letters: string[] = []
      class Handler extends BaseWorkflow {
        static override workflow = { name: 'handler' }
        async run(ctx: WorkflowCtx, letter: DeadLetter) {
          await ctx.localStep('handle', () => void letters.push(letter.deadRunId))
        }
      }
      class Eager extends BaseWorkflow {
        static override workflow = { name: 'eager', deadLetterWorkflow: Handler }
        async run() {}
      }
      class Lazy extends BaseWorkflow {
        static override workflow = {
          name: 'lazy',
          deadLetterWorkflow: async () => ({ default: Handler }),
        }
        async run() {}
      }
      const app = await stage.app()
      for (const target of [Handler, Eager, Lazy]) registerClass(app, target)
      await app.engine.start(Eager, undefined, 'eager')
      await app.engine.start(Lazy, undefined, 'lazy')
      await stage.loseBeyondCap('eager')
      await stage.loseBeyondCap('lazy')
      await app.work()
      await stage.handled(app.engine, 'eager')
      await stage.handled(app.engine, 'lazy')
      assert.sameMembers(letters, ['eager', 'lazy'])
    })

    test('DL-21, DL-22: deadLetterWorkflow of the configuration takes what names none, and only that', async ({
      assert,
    }) => {
      const app = await stage.app({ deadLetterWorkflow: 'fleet' })
      const fleet = registerHandler(app.engine, 'fleet')
      const own = registerHandler(app.engine)
      const alerts = registerClass(app, Pipeline)
      const plain = app.engine.register('plain', '1', async () => {})
      const optional = app.engine.register('optional', '1', async () => {}, {
        deadLetterWorkflow: HANDLER,
      })
      await app.engine.start(plain, null, 'plain')
      await app.engine.start(optional, null, 'optional')
      await app.engine.start(Pipeline, { lines: 1 }, 'inline')
      for (const workflow of ['plain', 'optional', 'pipeline']) await stage.loseBeyondCap(workflow)
      await app.work()
      for (const id of ['plain', 'optional', 'inline']) await stage.handled(app.engine, id)
      assert.deepEqual(
        fleet.map(({ deadRunId }) => deadRunId),
        ['plain']
      )
      assert.deepEqual(
        own.map(({ deadRunId }) => deadRunId),
        ['optional']
      )
      assert.lengthOf(alerts.paged, 1)
    })

    test('DL-24: a run that dies again has the handler run it had', async ({ assert }) => {
      const app = await stage.app()
      const letters = registerHandler(app.engine)
      const { worker } = await die(app, { deadLetterWorkflow: HANDLER })
      const first = await stage.handled(app.engine)
      await worker.stop()
      assert.isTrue(await app.engine.requeue('r'))
      await stage.loseBeyondCap('poison')
      const next = await app.work()
      const again = await app.engine.waitForRun('r')
      assert.equal(again.status, 'dead')
      await next.whenIdle()
      assert.deepEqual(await app.engine.getRun('dlq:r'), first)
      assert.lengthOf(letters, 1)
    })

    test('DL-24: an id that somebody else has taken keeps no run from being dead', async ({
      assert,
    }) => {
      const app = await stage.app()
      const letters = registerHandler(app.engine)
      const other = app.engine.register('other', '1', async () => 'mine')
      await app.engine.start(other, null, 'dlq:r')
      const { run, worker } = await die(app, { deadLetterWorkflow: HANDLER })
      assert.equal(run.status, 'dead')
      await worker.whenIdle()
      const taken = await stage.handled(app.engine)
      assert.equal(taken.output, 'mine')
      assert.deepEqual(letters, [])
    })

    test('DL-26: the handler run is in the namespace of the dead one and has none of its tags', async ({
      assert,
    }) => {
      const app = await stage.app({ namespaces: ['default', 'eu'] })
      registerHandler(app.engine)
      const ref = app.engine.register('poison', '1', async () => {}, {
        deadLetterWorkflow: HANDLER,
        tags: ['import'],
      })
      await app.engine.start(ref, null, { runId: 'r', namespace: 'eu', tags: ['customer-1'] })
      await stage.loseBeyondCap('poison', 'eu')
      await app.work()
      const handled = await stage.handled(app.engine)
      assert.equal(handled.namespace, 'eu')
      assert.deepEqual(handled.tags, [])
    })

    test('DL-27: a run that fails has no handler run', async ({ assert }) => {
      const app = await stage.app({ deadLetterWorkflow: 'handler' })
      const letters = registerHandler(app.engine)
      const failing = app.engine.register('failing', '1', async () => {
        throw new Error('No')
      })
      const worker = await app.work()
      await app.engine.start(failing, null, 'r')
      const run = await app.engine.waitForRun('r')
      assert.equal(run.status, 'failed')
      await worker.whenIdle()
      assert.isNull(await app.engine.getRun('dlq:r'))
      assert.deepEqual(letters, [])
    })

    test('DL-28: a handler run that is dead itself is handed to nobody', async ({ assert }) => {
      const app = await stage.app({ deadLetterWorkflow: 'handler' })
      registerHandler(app.engine)
      const { run, worker } = await die(app, { id: 'dlq:r' })
      assert.equal(run.status, 'dead')
      await worker.whenIdle()
      const { runs } = await app.engine.listRuns()
      assert.deepEqual(
        runs.map(({ id }) => id),
        ['dlq:r']
      )
    })

    test('DL-29: a handler that is not registered here is warned of, with run, handler and fix; its run waits for a worker that has it, and recovery goes on', async ({
      assert,
    }) => {
      const app = await stage.app()
      const healthy = app.engine.register('healthy', '1', async () => 'fine')
      await app.engine.start(healthy, null, 'h')
      await stage.dying.takeAndDie('healthy')
      const { run, worker } = await die(app, { deadLetterWorkflow: 'elsewhere' })
      assert.equal(run.status, 'dead')
      const recovered = await app.engine.waitForRun('h')
      assert.equal(recovered.output, 'fine')
      await worker.whenIdle()
      const warnings = app.log.lines
        .filter(({ level }) => level === 'warn')
        .map(({ args }) => String(args))
      const named = warnings.filter((line) => line.includes('elsewhere'))
      assert.lengthOf(named, 1)
      assert.include(named[0], '"r"')
      assert.match(named[0] ?? '', /Register the workflow, or correct its name/)
      const waiting = await app.engine.getRun('dlq:r')
      assert.equal(waiting?.status, 'pending')
      await worker.stop()

      const other = await stage.app()
      const letters = registerHandler(other.engine, 'elsewhere')
      await other.work()
      await stage.handled(other.engine)
      assert.deepEqual(
        letters.map(({ deadRunId }) => deadRunId),
        ['r']
      )
    })

    test('DL-29: a handler that cannot even be named is an error in the log; the run is dead and executed no more', async ({
      assert,
    }) => {
      const app = await stage.app()
      // It is named once when the worker starts, and cannot be when it is needed.
      let calls = 0
      const deadLetterWorkflow = async () => {
        if (++calls > 1) throw new Error('no such module')
        return 'handler'
      }
      const { run } = await die(app, { deadLetterWorkflow })
      assert.equal(run.status, 'dead')
      assert.isNull(await app.engine.getRun('dlq:r'))
      const errors = app.log.lines.filter(({ level }) => level === 'error')
      assert.isTrue(errors.some(({ args }) => /"r".*deadLetterWorkflow/.test(String(args[1]))))
    })

    test('DL-29: of a run whose input cannot be read the log says that, and not that the option is wrong', async ({
      assert,
    }) => {
      await stage.store.commit([storedRun('poison', { id: 'r', input: '{"v":' })])
      await stage.loseBeyondCap('poison')
      const app = await stage.app()
      const { engine } = app
      engine.register('poison', '1', async () => {}, { deadLetterWorkflow: 'handler' })
      await app.work()
      const run = await engine.waitForRun('r')
      assert.equal(run.status, 'dead')
      const errors = app.log.lines.filter(({ level }) => level === 'error')
      const said = errors.map(({ args }) => String(args[1]))
      assert.isTrue(said.some((line) => /"r" is dead, and its input cannot be read/.test(line)))
      assert.isFalse(said.some((line) => line.includes('deadLetterWorkflow')))
    })
  })
)

test.group('Registration of handlers of dead runs', () => {
  test('DL-23: a class with both a deadLetter() method and the option is refused', ({ assert }) => {
    class Both extends BaseWorkflow {
      static override workflow = { name: 'both', deadLetterWorkflow: 'handler' }
      async run() {}
      override async deadLetter() {}
    }
    const environment = {
      maker: { make: async () => ({}) },
      logger: { debug() {}, info() {}, warn() {}, error() {} },
      origin: null,
      inDevelopment: false,
    }
    assert.throws(
      () => workflowDefinitions(Both, environment),
      /declares both a deadLetter\(\) method and a deadLetterWorkflow option/
    )
  })
})

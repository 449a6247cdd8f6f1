import { test } from '@japa/runner'
import { BaseWorkflow, workflowRef } from '../../src/base_workflow.ts'
import { internalsOf } from '../../src/engine/engine.ts'
import { FatalError } from '../../src/errors.ts'
import type { WorkflowCtx } from '../../src/types/context.ts'
import type { FailureRoute, OnErrorInput, WorkflowClass } from '../../src/types/workflow.ts'
import { Stage } from '../support/stage.ts'
import { DurableApp } from '../support/durable_app.ts'
import { KINDS, onEach } from '../stores/databases.ts'

class InvalidLine extends FatalError {
  static override readonly code = 'invalid_line'
  constructor() {
    super('invalid', InvalidLine.code)
  }
}

/** A class with a code that is no FatalError. */
class Overdrawn extends Error {
  static code = 'overdrawn'
  code = Overdrawn.code
}

class Rejected extends BaseWorkflow {
  static override workflow = { name: 'matching.rejected' }
  async run(_: WorkflowCtx, failure: OnErrorInput) {
    return `rejected ${failure.error.code}`
  }
}

const HANDLERS: Record<string, FailureRoute['workflow']> = {
  'a name': 'matching.rejected',
  'a class': Rejected,
  'a ref': workflowRef('matching.rejected', '1'),
  'a ref without a version': workflowRef('matching.rejected'),
  'a function that returns a class': () => Rejected,
  'a function that returns a ref': () => workflowRef('matching.rejected'),
  'a function that resolves to a class': async () => Rejected,
  'a function that resolves to a module': async () => ({ default: Rejected }),
  'a function that returns a name': () => 'matching.rejected',
}

const throwing = async () => {
  throw new InvalidLine()
}

/** A workflow class that fails with `invalid_line`. */
function lineClass(onError: FailureRoute[], name = 'matching.line'): WorkflowClass {
  return class Line extends BaseWorkflow {
    static override workflow = { name, onError }
    run() {
      return throwing()
    }
  }
}

onEach(KINDS, (kind) =>
  test.group(`Failure routes | matching (${kind})`, (group) => {
    let stage: Stage
    group.each.setup(async () => {
      stage = await Stage.on(kind)
      return () => stage.close()
    })

    /** How a run ends whose step throws `thrown`, under these routes to handlers that return their own name. */
    async function outcomeOf(thrown: unknown, routes: Record<string, FailureRoute['code']>) {
      const app = await stage.app()
      const { engine } = app
      const handled = Object.entries(routes).map(([workflow, code]) => ({ workflow, code }))
      for (const { workflow } of handled) engine.register(workflow, '1', async () => workflow)
      engine.register(
        'main',
        '1',
        (ctx) =>
          ctx.localStep(
            'fail',
            () => {
              throw thrown
            },
            { retries: 0 }
          ),
        { onError: handled }
      )
      await app.work()
      await engine.start({ name: 'main' }, null, 'r')
      const { status, output, errorCode, tags } = await engine.waitForRun('r')
      return status === 'completed' ? [output, ...tags] : [status, errorCode, ...tags]
    }

    test('OE-2: an exact code wins over the catch-all, wherever it stands', async ({ assert }) => {
      const routes = { rest: undefined, exact: 'no_stock' }
      const thrown = new FatalError('none', 'no_stock')
      assert.deepEqual(await outcomeOf(thrown, routes), ['exact', 'onError:no_stock'])
    })

    test('OE-2: the catch-all takes what no other route does, and failures without a code', async ({
      assert,
    }) => {
      const routes = { exact: 'no_stock', rest: undefined }
      assert.deepEqual(await outcomeOf(new Error('odd'), routes), ['rest', 'onError:*'])
    })

    test('OE-3: the code is the second argument of FatalError, not its class', async ({
      assert,
    }) => {
      const thrown = new (class Other extends FatalError {})('x', 'invalid_line')
      const routes = { handler: InvalidLine }
      assert.deepEqual(await outcomeOf(thrown, routes), ['handler', 'onError:invalid_line'])
    })

    test('OE-3: the code is the one on whatever a step threw', async ({ assert }) => {
      const routes = { handler: Overdrawn }
      const plain = { code: 'overdrawn', message: 'no money' }
      assert.deepEqual(await outcomeOf(plain, routes), ['handler', 'onError:overdrawn'])
    })

    test('OE-3: an error of the class with another code does not match', async ({ assert }) => {
      const thrown = Object.assign(new Overdrawn('x'), { code: 'closed' })
      assert.deepEqual(await outcomeOf(thrown, { handler: Overdrawn }), ['failed', 'closed'])
    })

    test('OE-1: the handler of one process is taken by another that only has the class as a route', async ({
      assert,
    }) => {
      const failing = await stage.app()
      failing.engine.register('matching.line', '1', throwing, {
        onError: [{ workflow: 'matching.rejected' }],
      })
      const worker = await failing.work()
      await failing.engine.start({ name: 'matching.line' }, null, 'r')
      const { promise, resolve } = Promise.withResolvers<unknown>()
      failing.engine.on('run.routed', resolve)
      await promise
      await worker.stop()
      const other = await stage.app()
      const Line = lineClass([{ workflow: () => Rejected }])
      other.engine.register('other', '1', async () => {}, { deadLetterWorkflow: Line })
      await other.work()
      const run = await other.engine.waitForRun('r')
      assert.equal(run.output, 'rejected invalid_line')
    })

    for (const [shown, workflow] of Object.entries(HANDLERS))
      test(`OE-1: ${shown} is routed to, for a code, a class with a code, and the rest`, async ({
        assert,
      }) => {
        const app = await stage.app()
        const { engine } = app
        // A name is known only once its class is registered.
        await engine.start(Rejected, { error: { code: 'first' } })
        const targets = ['invalid_line', InvalidLine, undefined].flatMap((code, index) => [
          engine.register(`matching.function-${index}`, '1', throwing, {
            onError: [{ code, workflow }],
          }),
          lineClass([{ code, workflow }], `matching.class-${index}`),
        ])
        await app.work()
        const handles = await Promise.all(targets.map((target) => engine.start(target, null)))
        const outputs = await Promise.all(handles.map((handle) => handle.result()))
        assert.deepEqual(outputs, Array(6).fill('rejected invalid_line'))
      })
  })
)

test.group('Failure routes | registration', () => {
  const refusal = (onError: unknown, inClass = false) => {
    const { engine } = new DurableApp()
    try {
      if (inClass) {
        const Line = lineClass(onError as FailureRoute[])
        internalsOf(engine).naming.workflow(Line)
      } else engine.register('line', '1', throwing, { onError: onError as FailureRoute[] })
    } catch (error) {
      return error as { code: string; message: string }
    }
    throw new Error('It was accepted')
  }

  for (const inClass of [false, true]) {
    const where = inClass ? 'static workflow' : 'register()'
    test(`OE-2: two routes for one code are refused in ${where}, with both handlers`, ({
      assert,
    }) => {
      const routes = [
        { code: 'invalid_line', workflow: 'first' },
        { code: InvalidLine, workflow: Rejected },
      ]
      const { code, message } = refusal(routes, inClass)
      assert.equal(code, 'E_INVALID_WORKFLOW')
      assert.include(
        message,
        '"onError" has two routes for the code "invalid_line", to "first" and to "matching.rejected". Keep one'
      )
    })

    test(`OE-2: two catch-alls are refused in ${where}, with both handlers`, ({ assert }) => {
      const routes = [{ workflow: workflowRef('first') }, { workflow: () => Rejected }]
      const { message } = refusal(routes, inClass)
      assert.match(
        message,
        /two routes without a code, to "first" and to "\(\) ?=> ?Rejected": only one can take/
      )
    })
  }

  for (const [what, onError, problem] of [
    ['a class without a code', [{ code: Error, workflow: 'x' }], /class Error .* no static "code"/],
    [
      'a FatalError that inherits its code',
      [{ code: class Odd extends FatalError {}, workflow: 'x' }],
      /class Odd .* no static "code" of its own/,
    ],
    ['an empty code', [{ code: '', workflow: 'x' }], /invalid code, ""/],
    ['a code that is a number', [{ code: 12, workflow: 'x' }], /invalid code, "12"/],
    [
      'a misspelt key, which would make the route take every failure',
      [{ codes: 'x', workflow: 'h' }],
      /has the key "codes", which does not exist. Did you mean "code"\?/,
    ],
    ['a route to nothing', [{ code: 'x' }], /route for "x" in "onError" does not name a workflow/],
    [
      'a route to a number',
      [{ workflow: 3 }],
      /route for "\*" in "onError" does not name a workflow/,
    ],
    ['a handler as a route', ['handler'], /"onError" holds something that is not a route/],
    ['no list', { code: 'x', workflow: 'y' }, /"onError" is not a list. Pass a list of routes/],
  ] as const)
    test(`OE-1: ${what} is refused`, ({ assert }) => {
      const { code, message } = refusal(onError)
      assert.equal(code, 'E_INVALID_WORKFLOW')
      assert.match(message, problem)
    })
})

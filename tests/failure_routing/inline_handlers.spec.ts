import { test } from '@japa/runner'
import { BaseWorkflow } from '../../src/base_workflow.ts'
import { internalsOf } from '../../src/engine/engine.ts'
import { FatalError } from '../../src/errors.ts'
import { OnError } from '../../src/on_error.ts'
import type { WorkflowCtx } from '../../src/types/context.ts'
import type { DeadLetter, OnErrorInput } from '../../src/types/workflow.ts'
import { Stage } from '../support/stage.ts'
import { DurableApp } from '../support/durable_app.ts'
import { KINDS, onEach } from '../stores/databases.ts'

class InvalidLine extends FatalError {
  static override readonly code = 'invalid_line'
}

abstract class Importing extends BaseWorkflow {
  async run(_: WorkflowCtx, code: string): Promise<string> {
    throw new FatalError(`${code} came`, code)
  }

  @OnError(InvalidLine)
  @OnError('odd_line')
  async reject(ctx: WorkflowCtx, { error, workflow }: OnErrorInput<string>) {
    const recorded = await ctx.localStep('record', () => error.message)
    return `${this.constructor.name} rejected ${workflow}: ${recorded}`
  }

  @OnError()
  async rest(_: WorkflowCtx, failure: OnErrorInput<string>) {
    return `rest: ${failure.error.code}`
  }
}

class Line extends Importing {
  static override workflow = { name: 'inline.line', version: '3' }

  override async deadLetter(_: WorkflowCtx, dead: DeadLetter<string>) {
    return dead.deadRunId
  }
}

class Order extends Importing {
  static override workflow = {
    name: 'inline.order',
    onError: [{ code: 'late', workflow: 'inline.late' }],
  }

  @OnError('odd_line')
  override async reject() {
    return 'order rejected'
  }
}

onEach(KINDS, (kind) =>
  test.group(`Failure routes | inline handlers (${kind})`, (group) => {
    let stage: Stage
    group.each.setup(async () => {
      stage = await Stage.on(kind)
      return () => stage.close()
    })

    test('OE-67: a method is the handler of its codes, as a workflow of its own', async ({
      assert,
    }) => {
      const app = await stage.app()
      const { engine } = app
      await app.work()
      const outputs: Record<string, unknown> = {}
      for (const code of ['invalid_line', 'odd_line', 'other']) {
        await engine.start(Line, code, code)
        const run = await engine.waitForRun(code)
        outputs[code] = run.output
      }
      assert.deepEqual(outputs, {
        invalid_line: 'Line rejected inline.line: invalid_line came',
        odd_line: 'Line rejected inline.line: odd_line came',
        other: 'rest: other',
      })
      const handler = await engine.getRun('invalid_line.onError.0')
      assert.deepEqual([handler?.workflow, handler?.version], ['inline.line.onError.reject', '3'])
      const names = app.registry.workflows().map(({ name }) => name)
      assert.sameMembers(names, [
        'inline.line',
        'inline.line.onError.reject',
        'inline.line.onError.rest',
        'inline.line.dlq',
      ])
    })

    test('OE-67: a method that a subclass marks again has its new codes alone, beside the routes of the options', async ({
      assert,
    }) => {
      const app = await stage.app()
      const { engine } = app
      engine.register('inline.late', '1', async () => 'late')
      await app.work()
      const outputs: unknown[] = []
      for (const code of ['invalid_line', 'odd_line', 'late']) {
        const handle = await engine.start(Order, code)
        outputs.push(await handle.result())
      }
      assert.deepEqual(outputs, ['rest: invalid_line', 'order rejected', 'late'])
    })
  })
)

test.group('Failure routes | inline handlers that are refused', () => {
  const register = (target: typeof BaseWorkflow) =>
    internalsOf(new DurableApp().engine).naming.workflow(target as never)

  test('OE-67: a method and a route for one code are refused, with both handlers', ({ assert }) => {
    class Twice extends Importing {
      static override workflow = {
        name: 'inline.twice',
        onError: [{ code: InvalidLine, workflow: 'elsewhere' }],
      }
    }
    assert.throws(
      () => register(Twice),
      /two routes for the code "invalid_line", to "elsewhere" and to "inline\.twice\.onError\.reject"/
    )
  })

  test('OE-67: what is no method of instances is refused where it is decorated', ({ assert }) => {
    const decorate = OnError('x')
    const method = { value: async () => 1 }
    class Some extends BaseWorkflow {
      async run() {}
    }
    assert.throws(
      () => decorate(Some, 'fix', method),
      /@OnError\(\) decorates methods of instances/
    )
    assert.throws(
      () => decorate(Some.prototype, 'fix', { get: () => method.value }),
      /@OnError\(\) decorates methods of instances only, and "fix" is not one/
    )
  })
})

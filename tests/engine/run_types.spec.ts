import { test } from '@japa/runner'
import { BaseWorkflow, workflowRef } from '../../src/base_workflow.ts'
import type { WorkflowEngine } from '../../src/engine/engine.ts'
import type { WorkflowRun } from '../../src/engine/workflow_run.ts'
import { ChildError, FatalError } from '../../src/errors.ts'
import type { WorkflowCtx } from '../../src/types/context.ts'
import type { InputOf, OutputOf, RunHandle } from '../../src/types/workflow.ts'
import { DurableApp } from '../support/durable_app.ts'

interface Receipt {
  total: number
}

class Checkout extends BaseWorkflow {
  static override workflow = { name: 'run_types.checkout' }
  async run(_: WorkflowCtx, input: { cents: number }): Promise<Receipt> {
    return { total: input.cents }
  }
}

const checkout = workflowRef<{ cents: number }, Receipt>('run_types.checkout')

class InvalidLine extends FatalError<{ field: string }[]> {
  static override readonly code = 'invalid_line'
  constructor(issues: { field: string }[]) {
    super('invalid', InvalidLine.code, issues)
  }
}

class Untyped extends FatalError {
  static override readonly code = 'untyped'
}

test.group('Types of a run', () => {
  test('input and output of a class, of an instance and of a ref', ({ expectTypeOf }) => {
    expectTypeOf<InputOf<typeof Checkout>>().toEqualTypeOf<{ cents: number }>()
    expectTypeOf<OutputOf<typeof Checkout>>().toEqualTypeOf<Receipt>()
    expectTypeOf<OutputOf<Checkout>>().toEqualTypeOf<Receipt>()
    expectTypeOf<InputOf<typeof checkout>>().toEqualTypeOf<{ cents: number }>()
    expectTypeOf<OutputOf<typeof checkout>>().toEqualTypeOf<Receipt>()
    expectTypeOf<OutputOf<number>>().toBeNever()
  })

  test('a handle says what the run that is read by it ends with', async ({
    assert,
    expectTypeOf,
    cleanup,
  }) => {
    const app = new DurableApp()
    cleanup(() => app.close())
    await app.work()
    const handle = await app.engine.start(Checkout, { cents: 7 })
    expectTypeOf(handle).toEqualTypeOf<RunHandle<Receipt>>()
    const ended = await app.engine.waitForRun(handle)
    expectTypeOf(ended).toEqualTypeOf<WorkflowRun<Receipt>>()
    assert.equal(ended.output?.total, 7)
    const read = await app.engine.getRun(handle)
    expectTypeOf(read).toEqualTypeOf<WorkflowRun<Receipt> | null>()
    assert.equal(read?.id, handle.runId)
  })

  test('by id, the type of the output is given or any', ({ expectTypeOf }) => {
    const typed = (engine: WorkflowEngine) => engine.getRun<OutputOf<typeof checkout>>('a')
    expectTypeOf<Awaited<ReturnType<typeof typed>>>().toEqualTypeOf<WorkflowRun<Receipt> | null>()
    const untyped = (engine: WorkflowEngine) => engine.waitForRun('a')
    expectTypeOf<Awaited<ReturnType<typeof untyped>>['output']>().toBeAny()
  })
})

test.group('Types of a failure', () => {
  test('the guard of a class knows the details that the class declares', ({
    assert,
    expectTypeOf,
  }) => {
    const thrown = new InvalidLine([{ field: 'iata' }])
    expectTypeOf(thrown.details).toEqualTypeOf<{ field: string }[]>()
    const { name, message, code, details } = thrown
    const caught: unknown = new ChildError(
      { name, message, code, details },
      { runId: 'a', status: 'failed', attempts: 1 }
    )
    assert.isTrue(InvalidLine.is(caught))
    if (!InvalidLine.is(caught)) return
    expectTypeOf(caught.details).toEqualTypeOf<{ field: string }[]>()
    assert.equal(caught.details[0]?.field, 'iata')
  })

  test('without such a declaration they are unknown', ({ assert, expectTypeOf }) => {
    const caught: unknown = new Untyped('x')
    assert.isTrue(Untyped.is(caught))
    if (Untyped.is(caught)) expectTypeOf(caught.details).toBeUnknown()
    // @ts-expect-error the details are those that the class declares
    const wrongDetails = () => new FatalError<string>('x', 'y', 7)
    expectTypeOf(wrongDetails).toBeFunction()
  })
})

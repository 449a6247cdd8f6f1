import { test } from '@japa/runner'
import { BaseWorkflow, workflowRef } from '../src/base_workflow.ts'
import { useEngine, type StartsWorkflows } from '../src/engine/current_engine.ts'
import { runInScope } from '../src/engine/scope.ts'
import type { WorkflowCtx } from '../src/types/context.ts'
import type { RunHandle } from '../src/types/workflow.ts'

class Ship extends BaseWorkflow {
  static override workflow = { name: 'ship' }
  async run(_: WorkflowCtx, input: { parcel: number }): Promise<string> {
    return `shipped ${input.parcel}`
  }
}

class Tick extends BaseWorkflow {
  static override workflow = { name: 'tick' }
  async run(): Promise<number> {
    return 1
  }
}

/** Keeps what it was asked to start; every run it starts ends with `shipped`. */
function fakeEngine() {
  const calls: unknown[][] = []
  const engine: StartsWorkflows = {
    start: async (...args) => {
      calls.push(args)
      return { runId: 'run-1', result: async () => 'shipped' } as RunHandle<never>
    },
  }
  return { calls, engine }
}

/** A context that keeps what it was asked for. */
function fakeBody() {
  const calls: unknown[][] = []
  const operation = Promise.resolve('child output')
  const ctx = {
    child: (...args: unknown[]) => (calls.push(['child', ...args]), operation),
    startChild: (...args: unknown[]) => (calls.push(['startChild', ...args]), operation),
  } as unknown as WorkflowCtx
  const within = <T>(fn: () => T) => runInScope({ kind: 'body', ctx, fail() {}, queried() {} }, fn)
  return { calls, operation, within }
}

test.group('BaseWorkflow | outside of a body', (group) => {
  let stopUsing = () => {}
  group.each.teardown(() => stopUsing())

  test('start waits for the output', async ({ assert }) => {
    const { calls, engine } = fakeEngine()
    stopUsing = useEngine(async () => engine)
    assert.equal(await Ship.start({ parcel: 1 }, { runId: 'order-1' }), 'shipped')
    assert.deepEqual(calls, [[Ship, { parcel: 1 }, { runId: 'order-1' }]])
  })

  test('dispatch resolves to the handle', async ({ assert }) => {
    const { calls, engine } = fakeEngine()
    stopUsing = useEngine(async () => engine)
    const handle = await Ship.dispatch({ parcel: 1 })
    assert.equal(handle.runId, 'run-1')
    assert.deepEqual(calls, [[Ship, { parcel: 1 }, {}]])
  })

  test('start with a transaction is refused before anything is started; dispatch passes it on', async ({
    assert,
  }) => {
    const { calls, engine } = fakeEngine()
    stopUsing = useEngine(async () => engine)
    const client = {}
    await assert.rejects(
      () => Ship.start({ parcel: 1 }, { client }),
      /"ship".*inside a transaction/
    )
    assert.isEmpty(calls)
    await Ship.dispatch({ parcel: 1 }, { client })
    assert.deepEqual(calls, [[Ship, { parcel: 1 }, { client }]])
  })

  test('a step starts runs through the engine', async ({ assert }) => {
    const { calls, engine } = fakeEngine()
    stopUsing = useEngine(async () => engine)
    await runInScope({ kind: 'step', name: 'notify', fail() {} }, () => Tick.dispatch())
    assert.deepEqual(calls, [[Tick, undefined, {}]])
  })

  test('the engine of the later of two applications is meant until that one ends, then that of the earlier', async ({
    assert,
  }) => {
    const [earlier, later] = [fakeEngine(), fakeEngine()]
    stopUsing = useEngine(async () => earlier.engine)
    const stopUsingLater = useEngine(async () => later.engine)
    await Tick.dispatch()
    stopUsingLater()
    stopUsingLater()
    await Tick.dispatch()
    assert.lengthOf(later.calls, 1)
    assert.lengthOf(earlier.calls, 1)
  })

  test('without a booted application it says which provider is missing', async ({ assert }) => {
    await assert.rejects(() => Tick.start(), /Tick\.start\(\).*durable_provider/)
    await assert.rejects(() => Tick.dispatch(), /Tick\.dispatch\(\).*durable_provider/)
  })
})

test.group('BaseWorkflow | inside a body', () => {
  test('start is ctx.child and dispatch is ctx.startChild, with the run id', ({ assert }) => {
    const { calls, within } = fakeBody()
    within(() => void Ship.start({ parcel: 1 }, { runId: 'parcel-1' }))
    within(() => void Tick.dispatch())
    assert.deepEqual(calls, [
      ['child', Ship, { parcel: 1 }, 'parcel-1'],
      ['startChild', Tick, undefined, undefined],
    ])
  })

  test('they return the operation itself, so that a forgotten await stays visible', ({
    assert,
  }) => {
    const { operation, within } = fakeBody()
    assert.strictEqual(within(() => Ship.start({ parcel: 1 })) as unknown, operation)
    assert.strictEqual(within(() => Ship.dispatch({ parcel: 1 })) as unknown, operation)
  })

  test('options that a child takes from its parent are refused', ({ assert }) => {
    const { calls, within } = fakeBody()
    assert.throws(
      () => within(() => Ship.start({ parcel: 1 }, { tags: ['x'] })),
      /Ship\.start\(\) inside a workflow body takes no other option than "runId", and was given "tags"/
    )
    assert.throws(() => within(() => Tick.dispatch(undefined, { client: {} })), /"client"/)
    assert.isEmpty(calls)
  })
})

test.group('BaseWorkflow | types', () => {
  test('input and output come from run', ({ expectTypeOf }) => {
    type Start = ReturnType<typeof Ship.start<Ship>>
    expectTypeOf<Start>().toEqualTypeOf<Promise<string>>()
    type Dispatch = ReturnType<typeof Tick.dispatch<Tick>>
    expectTypeOf<Dispatch>().toEqualTypeOf<Promise<RunHandle<number>>>()
    // @ts-expect-error a parcel is a number
    const wrongInput = () => Ship.start({ parcel: 'one' })
    // @ts-expect-error the input is required
    const missingInput = () => Ship.start()
    expectTypeOf(wrongInput).toBeFunction()
    expectTypeOf(missingInput).toBeFunction()
  })

  test('a ref has the name, the version and the types', ({ assert, expectTypeOf }) => {
    const ref = workflowRef<{ parcel: number }, string>('ship', '2')
    assert.deepEqual(ref, { name: 'ship', version: '2' })
    assert.deepEqual(workflowRef('ship'), { name: 'ship' })
    expectTypeOf<NonNullable<(typeof ref)['~types']>>().toEqualTypeOf<{
      input: { parcel: number }
      output: string
    }>()
  })
})

import { test } from '@japa/runner'
import { BaseWorkflow } from '../../src/base_workflow.ts'
import { E_RESULT_IN_BODY } from '../../src/errors.ts'
import type { WorkflowCtx } from '../../src/types/context.ts'
import { DurableApp } from '../support/durable_app.ts'

class Parcel extends BaseWorkflow {
  static override workflow = { name: 'shop.parcel' }
  async run(_: WorkflowCtx, weight: number) {
    return weight
  }
}

test.group('Handle of a child', () => {
  test('can be stored, and its result() says what to call instead', async ({ assert, cleanup }) => {
    const app = new DurableApp()
    cleanup(() => app.close())
    const refused: unknown[] = []
    const order = app.engine.register('shop.order', '1', async (ctx) => {
      const dispatched = await Parcel.dispatch(1, { runId: 'parcel-1' })
      const started = await ctx.startChild(Parcel, 2)
      for (const handle of [dispatched, started as typeof dispatched]) {
        try {
          await handle.result()
        } catch (error) {
          refused.push(error)
        }
      }
      return ctx.localStep('keep', () => [dispatched, started])
    })
    await app.work()

    const { runId } = await app.engine.start(order, undefined)
    const { output } = await app.engine.waitForRun(runId)
    assert.deepEqual(output, [{ runId: 'parcel-1' }, { runId: `${runId}.child.1` }])
    assert.lengthOf(refused, 2)
    for (const error of refused) assert.instanceOf(error, E_RESULT_IN_BODY)
    assert.match(String(refused[0]), /result\(\) of run "parcel-1".*ctx\.child\(\)/)
  })

  test('result() that nobody catches fails the run with E_RESULT_IN_BODY', async ({
    assert,
    cleanup,
  }) => {
    const app = new DurableApp()
    cleanup(() => app.close())
    const order = app.engine.register('shop.order', '1', async () => {
      const handle = await Parcel.dispatch(1)
      return handle.result()
    })
    await app.work()
    const { runId } = await app.engine.start(order, undefined)
    const { status, error } = await app.engine.waitForRun(runId)
    assert.equal(status, 'failed')
    assert.equal(error?.code, 'E_RESULT_IN_BODY')
  })
})

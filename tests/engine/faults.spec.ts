import { test } from '@japa/runner'
import { setTimeout as delay } from 'node:timers/promises'
import { BaseWorkflow, workflowRef } from '../../src/base_workflow.ts'
import type { WorkflowCtx } from '../../src/types/context.ts'
import { DurableApp } from '../support/durable_app.ts'

/** How a run of this body ends, in an application that waits for no other build. */
async function failureOf(body: (ctx: WorkflowCtx, app: DurableApp) => unknown) {
  const app = new DurableApp({ options: { nonDeterminism: 'fail' } })
  try {
    app.engine.register('faulty', '1', async (ctx) => body(ctx, app))
    await app.work()
    const { runId } = await app.engine.start('faulty')
    const { error } = await app.engine.waitForRun(runId)
    return error
  } finally {
    await app.close()
  }
}

class Parcel extends BaseWorkflow {
  static override workflow = { name: 'parcel' }
  async run() {}
}

test.group('Faults', () => {
  test('an operation nobody awaited is told by its position and name, and nothing else', async ({
    assert,
  }) => {
    const error = await failureOf((ctx) => void ctx.sleep('1 minute'))
    assert.equal(error?.code, 'operation_not_awaited')
    assert.deepEqual(error?.details, { seq: 0, name: 'sleep' })
  })

  test('an operation after a foreign await is named in the message', async ({ assert }) => {
    const error = await failureOf(async (ctx) => {
      await delay(1)
      await ctx.localStep('charge', () => 1)
    })
    assert.match(
      error?.message ?? '',
      /^The body called local_step "charge" after it had awaited something other than an operation of ctx/
    )
  })

  test('the end of a body after a foreign await has a sentence of its own', async ({ assert }) => {
    const error = await failureOf(() => delay(1))
    assert.match(error?.message ?? '', /^The body ended after it had awaited something other than/)
  })

  test('a change that does not fit is to be rolled back or given a version', async ({ assert }) => {
    const app = new DurableApp({ options: { nonDeterminism: 'fail' } })
    let name = 'first'
    app.engine.register('changing', '1', async (ctx) => {
      await ctx.localStep(name, () => 1)
      await ctx.waitForSignal('go')
    })
    const before = await app.work()
    const { runId } = await app.engine.start('changing')
    await before.whenIdle()
    await before.stop()
    name = 'second'
    await app.work()
    await app.engine.signal('go')
    const { error } = await app.engine.waitForRun(runId)
    assert.equal(error?.code, 'non_determinism')
    assert.match(
      error?.message ?? '',
      /Roll the change back, or give the changed code a new version/
    )
    await app.close()
  })

  for (const { title, target, shown } of [
    { title: 'a class', target: Parcel, shown: 'parcel' },
    { title: 'a ref', target: workflowRef('parcel', '2'), shown: 'parcel' },
    { title: 'a name', target: 'parcel', shown: 'parcel' },
    { title: 'a function', target: () => Parcel, shown: '[Function: target]' },
  ]) {
    test(`engine.start in a body says which workflow, given ${title}`, async ({ assert }) => {
      const error = await failureOf((_, app) =>
        app.engine.start(target as typeof Parcel, undefined)
      )
      assert.equal(error?.code, 'E_START_IN_BODY')
      assert.include(error?.message, `A run of "${shown}" was started`)
    })
  }

  test('a child named by what names none is shown by what it is, not by its source', async ({
    assert,
  }) => {
    const lazy = () => Parcel
    const error = await failureOf((ctx) => ctx.child(lazy as never))
    assert.equal(error?.code, 'E_INVALID_WORKFLOW')
    assert.include(error?.message, '[Function: lazy]')
    assert.notInclude(error?.message, '=>')
  })
})

import type { StandardSchemaV1 } from '@standard-schema/spec'
import { test } from '@japa/runner'
import { FatalError } from '../../src/errors.ts'
import { stampStep } from '../../src/engine/step_stamp.ts'
import type { DurableApp } from '../support/durable_app.ts'
import { KINDS, onEach } from '../stores/databases.ts'
import { RECONCILE_MS, BrokeredApps } from './brokered_apps.ts'

const REFUSING: StandardSchemaV1<{ fails: boolean }> = {
  '~standard': {
    ...{ version: 1, vendor: 'test' },
    validate: () => ({ issues: [{ message: 'It is not what it was' }] }),
  },
}

/** A registered step of an application, and what it was called with. */
function registerStep(app: DurableApp, name: string): unknown[] {
  const calls: unknown[] = []
  app.registry.registerStep({
    ...{ name, options: {}, file: null },
    run: (input) => void calls.push(input),
  })
  return calls
}

onEach(KINDS, (kind) =>
  test.group(`Runs that end beside dispatched steps (${kind})`, (group) => {
    let stage: BrokeredApps
    group.each.setup(async () => {
      stage = await BrokeredApps.on(kind)
      return () => stage.close()
    })

    test('a step that lost its race is recorded abandoned, and nobody wants its result', async ({
      assert,
    }) => {
      const app = await stage.app()
      app.engine.register('race', '1', (ctx) =>
        Promise.race([ctx.step('work', null), ctx.sleep(1_000).then(() => 'slept')])
      )
      const worker = await app.work()
      await app.engine.start('race', null, 'r')
      const message = await stage.broker.next()
      await worker.whenIdle()
      await stage.pass(worker, 1_000)
      const run = await app.engine.waitForRun('r')
      assert.equal(run.output, 'slept')
      assert.equal(await stage.broker.complete(message, 'late'), 'unwanted')
      const records = await stage.records('r')
      assert.deepEqual(
        records.map(({ name, status, ordinal }) => ({ name, status, ordinal })),
        [
          { name: 'work', status: 'abandoned', ordinal: null },
          { name: 'sleep', status: 'completed', ordinal: 0 },
        ]
      )
      await stage.pass(worker, RECONCILE_MS)
      assert.lengthOf(stage.broker.sent, 1)
    })

    test('a cancelled run waits for nothing: the result is unwanted, and nothing is sent again', async ({
      assert,
    }) => {
      const app = await stage.app()
      app.engine.register('remote', '1', (ctx) => ctx.step('work', null))
      const worker = await app.work()
      await app.engine.start('remote', null, 'r')
      const message = await stage.broker.next()
      await worker.whenIdle()
      assert.isTrue(await app.engine.cancel('r'))
      assert.isFalse(await stage.broker.heartbeat(message))
      assert.equal(await stage.broker.complete(message, 'late'), 'unwanted')
      await stage.pass(worker, RECONCILE_MS)
      assert.lengthOf(stage.broker.sent, 1)
      assert.equal(await stage.statusOf('r'), 'cancelled')
    })

    test('a result of before a requeue is refused, and that of the new dispatch is taken', async ({
      assert,
    }) => {
      const app = await stage.app()
      app.engine.register('two', '1', async (ctx) => {
        const first = await ctx.step('first', null)
        return Promise.all([ctx.step('slow', first), ctx.step('quick', null, { retries: 0 })])
      })
      const worker = await app.work()
      await app.engine.start('two', null, 'r')
      await stage.broker.complete(await stage.broker.next(), 1)
      const [slow, quick] = [await stage.broker.next(), await stage.broker.next()]
      await stage.broker.fail(quick, new Error('no'))
      await app.engine.waitForRun('r')
      assert.equal(await stage.broker.complete(slow, 'between'), 'unwanted')
      assert.isTrue(await app.engine.requeue('r'))
      const [slowAgain, quickAgain] = [await stage.broker.next(), await stage.broker.next()]
      assert.equal(slowAgain.stepId, slow.stepId)
      assert.isAbove(slowAgain.generation, slow.generation)
      assert.equal(await stage.broker.complete(slow, 'old'), 'stored')
      await worker.whenIdle()
      const history = await stage.store.getHistory('r')
      assert.lengthOf(history?.waits ?? [], 2)
      assert.isFalse(await stage.broker.heartbeat(slow))
      await stage.broker.complete(slowAgain, 'new')
      await stage.broker.complete(quickAgain, 'quick')
      const run = await app.engine.waitForRun('r')
      assert.deepEqual(run.output, ['new', 'quick'])
      assert.lengthOf(stage.broker.sent, 5)
    })

    test('a dispatched step is undone by a step that is known here, with its output', async ({
      assert,
    }) => {
      const app = await stage.app()
      const refunds = registerStep(app, 'refund')
      const refund = () => {}
      stampStep(refund, 'refund')
      app.engine.register('order', '1', async (ctx) => {
        await ctx.step('charge', 5, { compensate: refund })
        await ctx.step('ship', null, { retries: 0 })
      })
      await app.work()
      await app.engine.start('order', null, 'r')
      await stage.broker.complete(await stage.broker.next(), { receipt: 'c1' })
      await stage.broker.fail(await stage.broker.next(), new Error('no stock'))
      const run = await app.engine.waitForRun('r')
      assert.equal(run.status, 'failed')
      assert.deepEqual(refunds, [{ receipt: 'c1' }])
    })

    /** A body that charges and fails, or waits to be cancelled, while the charge is in flight. */
    function registerOrder(app: DurableApp, input?: StandardSchemaV1<{ fails: boolean }>) {
      const undone: unknown[] = []
      const compensate = (output: unknown) => void undone.push(output)
      app.engine.register(
        'order',
        '1',
        (ctx, { fails }: { fails: boolean }) => {
          const charge = ctx.step('charge', 5, { compensate })
          const notice = ctx.step('notice', null)
          const failure = ctx.localStep('check', () => {
            if (fails) throw new FatalError('no stock')
          })
          return Promise.all([charge, notice, failure])
        },
        { input }
      )
      return undone
    }

    for (const { what, end } of [
      { what: 'failed', end: 'failed' },
      { what: 'was cancelled', end: 'cancelled' },
    ] as const) {
      const fails = end === 'failed'

      /** A run whose body is over, and whose charge is not. */
      async function owing(app: DurableApp) {
        const worker = await app.work()
        await app.engine.start('order', { fails }, 'r')
        const charge = await stage.broker.next()
        const notice = await stage.broker.next()
        if (!fails) await worker.whenIdle()
        if (!fails) await app.engine.cancel('r', { compensate: true })
        await worker.whenIdle()
        const { phase, status } = await stage.run('r')
        if (phase !== 'unwinding' || status !== 'suspended')
          throw new Error(`The run is ${status} and ${phase}`)
        return { worker, charge, notice }
      }

      test(`a step that was in flight when its run ${what} is waited for, and undone with its output`, async ({
        assert,
      }) => {
        const app = await stage.app()
        const undone = registerOrder(app)
        const { charge, notice, worker } = await owing(app)
        const { name, dueAt } = await stage.wait('r')
        assert.equal(name, 'charge')
        const suspended = await stage.run('r')
        assert.equal(suspended.dueAt, dueAt)
        assert.isFalse(await stage.broker.heartbeat(notice))
        await stage.broker.complete(notice, 'nobody waits for it')
        await worker.whenIdle()
        assert.deepEqual(undone, [])
        await stage.broker.complete(charge, { receipt: 'c1' })
        const run = await app.engine.waitForRun('r')
        assert.equal(run.status, end)
        assert.equal(run.recoveryAttempts, 0)
        assert.deepEqual(undone, [{ receipt: 'c1' }])
        const records = await stage.records('r')
        const charged = records.find(({ name: of, seq }) => of === 'charge' && seq >= 0)
        assert.containSubset(charged, { status: 'completed', ordinal: null, attempts: 1 })
        assert.lengthOf(stage.broker.sent, 2)
      })

      test(`a step that fails after its run ${what} is not undone`, async ({ assert }) => {
        const app = await stage.app()
        const undone = registerOrder(app)
        const { charge } = await owing(app)
        await stage.broker.fail(charge, new Error('declined'))
        const run = await app.engine.waitForRun('r')
        assert.deepEqual([run.status, undone], [end, []])
        assert.lengthOf(stage.broker.sent, 2)
      })

      test(`a step that is not answered after its run ${what} is undone at its deadline, which heartbeats put off`, async ({
        assert,
      }) => {
        const app = await stage.app()
        const undone = registerOrder(app)
        const { charge, worker } = await owing(app)
        await stage.pass(worker, RECONCILE_MS - 1_000)
        assert.isTrue(await stage.broker.heartbeat(charge))
        await stage.pass(worker, RECONCILE_MS - 1_000)
        assert.deepEqual(undone, [])
        await stage.pass(worker, 1_000)
        const run = await app.engine.waitForRun('r')
        assert.deepEqual([run.status, undone], [end, [undefined]])
        assert.equal(await stage.broker.complete(charge, 'late'), 'unwanted')
        assert.lengthOf(stage.broker.sent, 2)
      })
    }

    test('a step in flight is waited for, and undone, though the body is not run again: its input is refused', async ({
      assert,
    }) => {
      const first = await stage.app()
      registerOrder(first)
      const worker = await first.work()
      await first.engine.start('order', { fails: false }, 'r')
      const charge = await stage.broker.next()
      await worker.whenIdle()
      await worker.stop()
      const second = await stage.app()
      const undone = registerOrder(second, REFUSING)
      await second.work()
      await stage.broker.complete(charge, { receipt: 'c1' })
      const run = await second.engine.waitForRun('r')
      assert.deepEqual([run.status, run.error?.code], ['failed', 'invalid_input'])
      assert.deepEqual(undone, [{ receipt: 'c1' }])
    })
  })
)

import { test } from '@japa/runner'
import { KINDS, onEach } from '../stores/databases.ts'
import { registerRemote } from './remote_workflow.ts'
import { RECONCILE_MS, BrokeredApps } from './brokered_apps.ts'
import { internalsOf } from '../../src/engine/engine.ts'
import { reaches } from '../support/reaches.ts'

onEach(KINDS, (kind) =>
  test.group(`Deadlines of dispatched steps (${kind})`, (group) => {
    let stage: BrokeredApps
    group.each.setup(async () => {
      stage = await BrokeredApps.on(kind)
      return () => stage.close()
    })

    test('an attempt of which nothing is heard is sent again under the same id, and either answer counts', async ({
      assert,
    }) => {
      const app = await stage.app()
      const remote = registerRemote(app.engine)
      const worker = await app.work()
      for (const [id, answered] of [
        ['first', 0],
        ['again', 1],
      ] as const) {
        await app.engine.start(remote, null, id)
        const first = await stage.broker.next()
        await stage.pass(worker, RECONCILE_MS - 1_000)
        const known = await stage.dispatchOf(id)
        assert.equal(known?.id, first.dispatchId)
        await stage.pass(worker, 1_000)
        const again = await stage.broker.next()
        const { dispatchId, ...same } = again
        assert.deepEqual({ ...same, dispatchId: first.dispatchId }, first)
        assert.notEqual(dispatchId, first.dispatchId)
        const { dispatch } = await stage.wait(id)
        assert.deepEqual([dispatch?.id, dispatch?.redispatches], [dispatchId, 1])
        await stage.broker.complete([first, again][answered]!, 'done')
        const run = await app.engine.waitForRun(id)
        assert.deepEqual(run.output, { value: 'done' })
        const [record] = await stage.records(id)
        assert.equal(record?.attempts, 1)
      }
      assert.lengthOf(stage.broker.sent, 4)
    })

    for (const redispatchMax of [0, 2])
      test(`after ${redispatchMax} further messages without an answer the step fails with step_lost, whatever its retries`, async ({
        assert,
      }) => {
        const app = await stage.app({ options: { redispatchMax } })
        const worker = await app.work()
        await app.engine.start(registerRemote(app.engine, { retries: 5 }), null, 'r')
        await stage.broker.next()
        for (let again = 0; again < redispatchMax; again++) {
          await stage.pass(worker, RECONCILE_MS)
          const { attempt } = await stage.broker.next()
          assert.equal(attempt, 1)
          assert.equal(await stage.statusOf('r'), 'suspended')
        }
        await stage.pass(worker, RECONCILE_MS)
        const run = await app.engine.waitForRun('r')
        const { message, ...failure } = run.output
        assert.deepEqual(failure, {
          ...{ name: 'StepLost', code: 'step_lost', attempts: 1, retryable: false },
        })
        assert.include(message, `sent ${redispatchMax + 1} times`)
        assert.lengthOf(stage.broker.sent, redispatchMax + 1)
      })

    test('each attempt may be sent again as often as the first', async ({ assert }) => {
      const app = await stage.app({ options: { redispatchMax: 1 } })
      const worker = await app.work()
      await app.engine.start(registerRemote(app.engine, { backoffMs: 1 }), null, 'r')
      await stage.broker.next()
      await stage.pass(worker, RECONCILE_MS)
      await stage.broker.fail(await stage.broker.next(), new Error('no'))
      const second = await stage.broker.next()
      const dispatch = await stage.dispatchOf('r')
      assert.deepEqual([second.attempt, dispatch?.redispatches], [2, 0])
      await stage.pass(worker, RECONCILE_MS)
      const again = await stage.broker.next()
      assert.equal(again.attempt, 2)
      await stage.broker.complete(again, 'done')
      const run = await app.engine.waitForRun('r')
      assert.deepEqual(run.output, { value: 'done' })
    })

    test('a time limit of the call is the deadline, and heartbeats do not put it off', async ({
      assert,
    }) => {
      const app = await stage.app()
      const worker = await app.work()
      await app.engine.start(registerRemote(app.engine, { timeoutMs: 5_000 }), null, 'r')
      const first = await stage.broker.next()
      assert.deepEqual([first.timeoutMs, first.silenceMs], [5_000, null])
      await stage.pass(worker, 4_000)
      assert.isTrue(await stage.broker.heartbeat(first))
      await stage.pass(worker, 1_000)
      const again = await stage.broker.next()
      assert.equal(again.attempt, 1)
      await stage.broker.complete(again, 'done')
      await app.engine.waitForRun('r')
    })

    test('while heartbeats come the attempt is not sent again: the run that wakes finds it is not due', async ({
      assert,
    }) => {
      const app = await stage.app()
      const worker = await app.work()
      await app.engine.start(registerRemote(app.engine), null, 'r')
      const message = await stage.broker.next()
      for (let beats = 0; beats < 5; beats++) {
        await stage.pass(worker, RECONCILE_MS - 5_000)
        assert.isTrue(await stage.broker.heartbeat(message))
        const dueAt = await stage.deadlineOf('r')
        await stage.pass(worker, 4_000)
        assert.equal(await stage.deadlineOf('r'), dueAt)
      }
      assert.lengthOf(stage.broker.sent, 1)
      const { dueAt } = await stage.run('r')
      assert.equal(dueAt, await stage.deadlineOf('r'))
      await stage.pass(worker, RECONCILE_MS - 4_000)
      const again = await stage.broker.next()
      assert.isTrue(await stage.broker.heartbeat(message))
      await stage.broker.complete(again, 'done')
      await app.engine.waitForRun('r')
      assert.isFalse(await stage.broker.heartbeat(message))
    })

    test('heartbeats count for a run that is executing something beside the step', async ({
      assert,
    }) => {
      const app = await stage.app()
      const local = Promise.withResolvers<void>()
      app.engine.register('beside', '1', (ctx) =>
        Promise.all([ctx.step('work', null), ctx.localStep('slow', () => local.promise)])
      )
      await app.work()
      await app.engine.start('beside', null, 'r')
      const message = await stage.broker.next()
      await stage.store.advanceClock(RECONCILE_MS - 5_000)
      assert.isTrue(await stage.broker.heartbeat(message))
      const dueAt = await stage.deadlineOf('r')
      await stage.store.advanceClock(10_000)
      await internalsOf(app.engine).commits.idle()
      assert.equal(await stage.deadlineOf('r'), dueAt)
      await stage.store.advanceClock(RECONCILE_MS - 10_000)
      const again = await stage.broker.next()
      assert.equal(await stage.statusOf('r'), 'running')
      assert.lengthOf(stage.broker.sent, 2)
      local.resolve()
      await stage.broker.complete(again, 'done')
      await app.engine.waitForRun('r')
    })

    test('what could not be sent is sent at the deadline', async ({ assert }) => {
      const app = await stage.app()
      const worker = await app.work()
      stage.broker.isAway = true
      await app.engine.start(registerRemote(app.engine), null, 'r')
      await reaches(stage.store, 'r', 'suspended')
      await worker.whenIdle()
      assert.deepEqual(stage.broker.sent, [])
      assert.isTrue(
        app.log.lines.some(
          ({ level, args }) => level === 'warn' && /could not be sent/.test(String(args[1]))
        )
      )
      stage.broker.isAway = false
      await stage.pass(worker, RECONCILE_MS)
      await stage.broker.complete(await stage.broker.next(), 'done')
      const run = await app.engine.waitForRun('r')
      assert.deepEqual(run.output, { value: 'done' })
    })

    test('another process goes on with the deadlines of one that is gone', async ({ assert }) => {
      const first = await stage.app()
      const remote = registerRemote(first.engine, { backoffMs: 1 })
      const worker = await first.work()
      await first.engine.start(remote, null, 'r')
      const message = await stage.broker.next()
      await worker.stop()
      const second = await stage.app()
      registerRemote(second.engine, { backoffMs: 1 })
      const other = await second.work()
      await stage.pass(other, RECONCILE_MS)
      const again = await stage.broker.next()
      const { generation } = message
      assert.deepEqual([again.attempt, again.generation], [1, generation])
      await stage.broker.fail(again, new Error('no'))
      const next = await stage.broker.next()
      assert.deepEqual([next.attempt, next.generation], [2, generation])
      await stage.broker.complete(message, 'from the first')
      const run = await second.engine.waitForRun('r')
      assert.deepEqual(run.output, { value: 'from the first' })
      assert.equal(run.recoveryAttempts, 0)
    })
  })
)

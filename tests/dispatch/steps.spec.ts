import { test } from '@japa/runner'
import { FatalError } from '../../src/errors.ts'
import { encode } from '../../src/core/payload.ts'
import { KINDS, onEach } from '../stores/databases.ts'
import { reaches } from '../support/reaches.ts'
import { registerRemote } from './remote_workflow.ts'
import { RECONCILE_MS, BrokeredApps } from './brokered_apps.ts'

const HOUR_MS = 3_600_000
/** A back-off of such a length is spread over its upper half. */
const BACKOFF_MS = 20_000

onEach(KINDS, (kind) =>
  test.group(`Dispatched steps (${kind})`, (group) => {
    let stage: BrokeredApps
    group.each.setup(async () => {
      stage = await BrokeredApps.on(kind)
      return () => stage.close()
    })

    test('a step without a handler here goes out once its wait is durable, and its result resumes the run', async ({
      assert,
    }) => {
      const known: unknown[] = []
      const app = await stage.app({
        onSend: async ([message]) => {
          const { dispatch, dueAt } = await stage.wait('r')
          known.push([dispatch?.id, dispatch?.generation, dispatch?.attempt, dueAt !== null])
          assert.equal(message?.dispatchId, dispatch?.id)
        },
      })
      await app.engine.start(registerRemote(app.engine), { line: 7 }, 'r')
      await app.work()
      const message = await stage.broker.next()
      const { dispatchId, generation, ...rest } = message
      assert.deepEqual(rest, {
        ...{ stepId: 'r:0', runId: 'r', seq: 0, attempt: 1, name: 'work' },
        ...{ input: encode({ line: 7 }), timeoutMs: null, silenceMs: RECONCILE_MS },
      })
      assert.deepEqual(known, [[dispatchId, generation, 1, true]])
      await reaches(stage.store, 'r', 'suspended')
      assert.equal(await stage.broker.complete(message, { enriched: true }), 'stored')
      const run = await app.engine.waitForRun('r')
      assert.deepEqual(run.output, { value: { enriched: true } })
      assert.lengthOf(stage.broker.sent, 1)
      const [record] = await stage.records('r')
      assert.containSubset(record, { kind: 'step', name: 'work', status: 'completed', attempts: 1 })
    })

    test('a step with a handler here is executed here', async ({ assert }) => {
      const app = await stage.app()
      app.registry.registerStep({
        ...{ name: 'work', options: {}, file: null },
        run: (input) => ({ here: input }),
      })
      await app.engine.start(registerRemote(app.engine), 7, 'r')
      await app.work()
      const run = await app.engine.waitForRun('r')
      assert.deepEqual(run.output, { value: { here: 7 } })
      assert.deepEqual(stage.broker.sent, [])
    })

    test('histories of steps executed here and elsewhere are alike, and replay each other', async ({
      assert,
    }) => {
      const executed: unknown[] = []
      const elsewhere = await stage.app()
      const here = await stage.app({ hasTransport: false })
      here.registry.registerStep({
        ...{ name: 'work', options: {}, file: null },
        run: (input) => {
          executed.push(input)
          return { done: input }
        },
      })
      for (const { engine } of [elsewhere, here])
        engine.register('long', '1', async (ctx, input) => {
          const first = await ctx.step('work', input)
          await ctx.sleep(HOUR_MS)
          return first
        })
      const workers = { here: await here.work(), elsewhere: await elsewhere.work() }
      await workers.elsewhere.stop()
      await here.engine.start('long', 'here', 'here')
      await reaches(stage.store, 'here', 'suspended')
      await workers.here.stop()
      const again = await elsewhere.work()
      await elsewhere.engine.start('long', 'sent', 'sent')
      await stage.broker.complete(await stage.broker.next(), { done: 'sent' })
      await again.whenIdle()
      const place = async (id: string) => {
        const [first, ...others] = await stage.records(id)
        assert.deepEqual(others, [])
        const { kind: what, name, seq, after, ordinal, status, attempts } = first!
        return { what, name, seq, after, ordinal, status, attempts }
      }
      assert.deepEqual(await place('sent'), await place('here'))
      await again.stop()
      const other = await here.work()
      await stage.pass(other, HOUR_MS)
      for (const id of ['sent', 'here']) {
        const run = await stage.run(id)
        assert.deepEqual(run.output, { done: id })
      }
      assert.deepEqual(executed, ['here'])
    })

    test('a failed attempt is followed by another after the back-off, under the same id', async ({
      assert,
    }) => {
      const app = await stage.app()
      await app.engine.start(registerRemote(app.engine, { backoffMs: BACKOFF_MS }), 1, 'r')
      const worker = await app.work()
      const first = await stage.broker.next()
      await stage.broker.fail(first, new Error('not yet'))
      await worker.whenIdle()
      const { attempts, error, dispatch } = await stage.wait('r')
      assert.deepEqual([attempts, dispatch?.attempt], [1, 1])
      assert.include(error, 'not yet')
      await stage.pass(worker, BACKOFF_MS / 2 - 5_000)
      assert.lengthOf(stage.broker.sent, 1)
      await stage.pass(worker, BACKOFF_MS)
      const second = await stage.broker.next()
      assert.deepEqual(
        [second.stepId, second.generation, second.attempt],
        [first.stepId, first.generation, 2]
      )
      assert.notEqual(second.dispatchId, first.dispatchId)
      await stage.broker.complete(second, 'at last')
      const run = await app.engine.waitForRun('r')
      assert.deepEqual(run.output, { value: 'at last' })
      const [record] = await stage.records('r')
      assert.equal(record?.attempts, 2)
    })

    test('the last failed attempt fails the step, and so does one that is not to be repeated', async ({
      assert,
    }) => {
      const app = await stage.app()
      const remote = registerRemote(app.engine, { retries: 1, backoffMs: 1 })
      await app.engine.start(remote, null, 'spent')
      await app.work()
      await stage.broker.fail(await stage.broker.next(), new Error('one'))
      await stage.broker.fail(await stage.broker.next(), new Error('two'))
      const spent = await app.engine.waitForRun('spent')
      assert.containSubset(spent.output, { message: 'two', attempts: 2 })
      await app.engine.start(remote, null, 'fatal')
      await stage.broker.fail(await stage.broker.next(), new FatalError('never', 'invalid_line'))
      const fatal = await app.engine.waitForRun('fatal')
      const failure = { message: 'never', code: 'invalid_line', attempts: 1, retryable: false }
      assert.containSubset(fatal.output, failure)
      assert.lengthOf(stage.broker.sent, 3)
    })
  })
)

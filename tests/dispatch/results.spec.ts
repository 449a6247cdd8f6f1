import { test } from '@japa/runner'
import type { Write } from '../../src/core/change_set.ts'
import { encode } from '../../src/core/payload.ts'
import { internalsOf } from '../../src/engine/engine.ts'
import { KINDS, onEach } from '../stores/databases.ts'
import { reaches } from '../support/reaches.ts'
import { until } from '../support/until.ts'
import { registerRemote } from './remote_workflow.ts'
import { BrokeredApps } from './brokered_apps.ts'

/** A back-off of such a length is spread over its upper half. */
const BACKOFF_MS = 20_000

onEach(KINDS, (kind) =>
  test.group(`Results of dispatched steps (${kind})`, (group) => {
    let stage: BrokeredApps
    group.each.setup(async () => {
      stage = await BrokeredApps.on(kind)
      return () => stage.close()
    })

    test('the success of an earlier attempt counts, between two attempts and beside a later one', async ({
      assert,
    }) => {
      const app = await stage.app()
      const remote = registerRemote(app.engine, { backoffMs: BACKOFF_MS })
      const worker = await app.work()
      for (const id of ['between', 'beside']) await app.engine.start(remote, null, id)
      const messages = [await stage.broker.next(), await stage.broker.next()]
      for (const message of messages) await stage.broker.fail(message, new Error('lost contact'))
      await worker.whenIdle()
      const of = (id: string) => messages.find(({ runId }) => runId === id)!
      await stage.broker.complete(of('between'), 'after all')
      const between = await app.engine.waitForRun('between')
      assert.deepEqual(between.output, { value: 'after all' })
      await stage.pass(worker, BACKOFF_MS)
      const second = await stage.broker.next()
      await stage.broker.complete(of('beside'), 'first')
      const beside = await app.engine.waitForRun('beside')
      assert.deepEqual(beside.output, { value: 'first' })
      assert.equal(await stage.broker.complete(second, 'second'), 'unwanted')
      const [record] = await stage.records('beside')
      assert.equal(record?.attempts, 2)
    })

    test('the failure of an earlier attempt changes nothing', async ({ assert }) => {
      const app = await stage.app()
      await app.engine.start(
        registerRemote(app.engine, { retries: 1, backoffMs: BACKOFF_MS }),
        null,
        'r'
      )
      const worker = await app.work()
      const first = await stage.broker.next()
      await stage.broker.fail(first, new Error('one'))
      await worker.whenIdle()
      await stage.broker.fail(first, new Error('one, said twice'))
      await worker.whenIdle()
      const between = await stage.wait('r')
      assert.equal(between.attempts, 1)
      assert.notInclude(between.error, 'twice')
      await stage.pass(worker, BACKOFF_MS)
      const second = await stage.broker.next()
      await stage.broker.fail(first, new Error('one, said again'))
      await worker.whenIdle()
      const { attempts, dispatch } = await stage.wait('r')
      assert.deepEqual([attempts, dispatch?.id], [1, second.dispatchId])
      await stage.broker.complete(second, 'two')
      const run = await app.engine.waitForRun('r')
      assert.deepEqual(run.output, { value: 'two' })
    })

    test('a result that comes more than once is recorded once', async ({ assert }) => {
      const app = await stage.app()
      app.engine.register('two', '1', async (ctx) => [
        await ctx.step('one', null),
        await ctx.step('two', null),
      ])
      await app.engine.start('two', null, 'r')
      const worker = await app.work()
      const one = await stage.broker.next()
      const receipts = await Promise.all([1, 2, 3].map((n) => stage.broker.complete(one, n)))
      assert.deepEqual(receipts, ['stored', 'stored', 'stored'])
      const two = await stage.broker.next()
      assert.equal(await stage.broker.complete(one, 4), 'stored')
      await worker.whenIdle()
      await stage.broker.complete(two, 'second')
      const run = await app.engine.waitForRun('r')
      assert.equal(run.output[1], 'second')
      assert.oneOf(run.output[0], [1, 2, 3])
      assert.equal(await stage.broker.complete(two, 'again'), 'unwanted')
      assert.lengthOf(await stage.records('r'), 2)
    })

    test('a result reaches a run that executes something beside it', async ({ assert }) => {
      const app = await stage.app()
      const local = Promise.withResolvers<string>()
      app.engine.register('beside', '1', async (ctx) => {
        const slow = ctx.localStep('slow', () => local.promise)
        const remote = await ctx.step('work', null)
        return [await ctx.step('more', remote), await slow]
      })
      await app.engine.start('beside', null, 'r')
      await app.work()
      await stage.broker.complete(await stage.broker.next(), 'one')
      const more = await stage.broker.next()
      assert.equal(more.input, encode('one'))
      assert.equal(await stage.statusOf('r'), 'running')
      await stage.broker.complete(more, 'two')
      local.resolve('local')
      const run = await app.engine.waitForRun('r')
      assert.deepEqual(run.output, ['two', 'local'])
    })

    test('an output that is too large, or cannot be read, is a failure of the attempt', async ({
      assert,
    }) => {
      const app = await stage.app({ options: { maxPayloadBytes: 1_000 } })
      const remote = registerRemote(app.engine, { retries: 0 })
      await app.work()
      await app.engine.start(remote, null, 'large')
      await stage.broker.complete(await stage.broker.next(), 'x'.repeat(2_000))
      const large = await app.engine.waitForRun('large')
      assert.containSubset(large.output, { code: 'payload_too_large', attempts: 1 })
      await app.engine.start(remote, null, 'garbled')
      const garbled = { status: 'completed' as const, output: 'no JSON' }
      await stage.broker.answer(await stage.broker.next(), garbled)
      const unreadable = await app.engine.waitForRun('garbled')
      assert.containSubset(unreadable.output, { code: 'E_UNREADABLE_PAYLOAD' })
      await app.engine.start(remote, null, 'wordy')
      await stage.broker.fail(await stage.broker.next(), new Error('y'.repeat(100_000)))
      await app.engine.waitForRun('wordy')
      const [record] = await stage.records('wordy')
      assert.isBelow(record?.error?.length ?? Infinity, 17_000)
    })

    test('a result that cannot be stored now is not acknowledged, and delivered again', async ({
      assert,
    }) => {
      const app = await stage.app()
      await app.engine.start(registerRemote(app.engine), null, 'r')
      await app.work()
      const message = await stage.broker.next()
      await reaches(stage.store, 'r', 'suspended')
      const { commits } = internalsOf(app.engine)
      const write = commits.write.bind(commits)
      const refused = Promise.withResolvers<void>()
      commits.write = (wanted) => {
        if (wanted.type !== 'result') return write(wanted)
        refused.resolve()
        return Promise.reject(new Error('The database is away'))
      }
      let isAcknowledged = false
      const delivered = stage.broker.complete(message, 1).then(() => (isAcknowledged = true))
      await refused.promise
      await app.engine.getRun('r')
      assert.isFalse(isAcknowledged)
      commits.write = write
      const other = await stage.app()
      await other.engine.findStranded()
      await delivered
      const run = await app.engine.waitForRun('r')
      assert.deepEqual(run.output, { value: 1 })
    })

    test('a result that the database refuses is a failure of the attempt; where it refuses that too, the result is delivered again', async ({
      assert,
    }) => {
      const app = await stage.app()
      await app.engine.start(registerRemote(app.engine, { retries: 0 }), null, 'r')
      await app.work()
      const message = await stage.broker.next()
      await reaches(stage.store, 'r', 'suspended')
      const { commits } = internalsOf(app.engine)
      const write = commits.write.bind(commits)
      const given: string[] = []
      const refusal = { type: 'refused', error: new Error('Too large') }
      const refusing = async (wanted: Write) => {
        if (wanted.type === 'result') given.push(wanted.result.outcome.status)
        return wanted.type !== 'result' || given.length > 3 ? write(wanted) : refusal
      }
      commits.write = refusing as typeof write
      const delivered = stage.broker.complete(message, 1)
      await until(() => given.length === 2)
      const other = await stage.app()
      await other.engine.findStranded()
      assert.equal(await delivered, 'stored')
      assert.deepEqual(given, ['completed', 'failed', 'completed', 'failed'])
      const run = await app.engine.waitForRun('r')
      assert.containSubset(run.output, { message: 'Too large' })
    })
  })
)

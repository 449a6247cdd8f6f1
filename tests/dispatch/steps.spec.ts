import { test } from '@japa/runner'
import { FatalError } from '../../src/errors.ts'
import { encode } from '../../src/core/payload.ts'
import type { WorkflowEngine } from '../../src/engine/engine.ts'
import type { StepCall } from '../../src/types/step.ts'
import { STORES } from '../dead_letters/databases.ts'
import { RECONCILE_MS, Stage } from './stage.ts'

const HOUR_MS = 3_600_000
/** A back-off of such a length is spread over its upper half. */
const BACKOFF_MS = 20_000

/** A body of one step, which says what it came to. */
function registerRemote(engine: WorkflowEngine, call: StepCall<unknown> = {}) {
  return engine.register('remote', '1', async (ctx, input: unknown) => {
    try {
      return { value: await ctx.step('work', input, call) }
    } catch (error) {
      const { name, message, code, attempts, retryable } = error as Record<string, unknown>
      return { name, message, code, attempts, retryable }
    }
  })
}

for (const kind of Object.keys(STORES))
  test.group(`Dispatched steps (${kind})`, (group) => {
    let stage: Stage
    group.each.setup(async () => {
      stage = await Stage.on(kind)
      return async () => {
        const stranded = await stage.store.findStranded()
        await stage.close()
        if (stranded.length > 0) throw new Error(`Stranded: ${JSON.stringify(stranded)}`)
      }
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
      await stage.suspended('r')
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
      await stage.suspended('here')
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
      await stage.suspended('r')
      const { commits } = app.engine.context
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
  })

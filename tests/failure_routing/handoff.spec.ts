import { test } from '@japa/runner'
import { internalsOf, type WorkflowEngine } from '../../src/engine/engine.ts'
import type { RunEvents } from '../../src/engine/events.ts'
import { ChildError, FatalError } from '../../src/errors.ts'
import type { WorkflowCtx } from '../../src/types/context.ts'
import type { OnErrorInput } from '../../src/types/workflow.ts'
import { Stage } from '../support/stage.ts'
import { rowOf } from '../support/run_row.ts'
import { KINDS, onEach } from '../stores/databases.ts'
import { until } from '../support/until.ts'

interface Line {
  n: number
}

class InvalidLine extends FatalError {
  static override readonly code = 'invalid_line'
  constructor(line: Line) {
    super(`line ${line.n} is invalid`, InvalidLine.code, { n: line.n })
  }
}

const LINE = { name: 'line', version: '1' }

/** Lines of which the odd ones are invalid; `rejected` takes care of those. */
function registerLines(
  engine: WorkflowEngine,
  handle: (ctx: WorkflowCtx, failure: OnErrorInput<Line>) => unknown = () => ({ ok: 0, failed: 1 })
) {
  const bodies = { count: 0 }
  engine.register(
    'line',
    '1',
    async (ctx, line: Line) => {
      bodies.count++
      await ctx.localStep('validate', () => {
        if (line.n % 2 === 1) throw new InvalidLine(line)
      })
      return { ok: 1, failed: 0 }
    },
    { onError: [{ code: InvalidLine, workflow: 'rejected' }] }
  )
  engine.register('rejected', '1', async (ctx, failure: OnErrorInput<Line>) => handle(ctx, failure))
  return bodies
}

/** A handler that waits until it is signalled, so that its run can be looked at. */
const waitForGo = async (ctx: WorkflowCtx) => ({ failed: await ctx.waitForSignal('go') })

/** Resolves once a run is handed on. */
function routed(engine: WorkflowEngine): Promise<RunEvents['run.routed']> {
  return new Promise((resolve) => engine.on('run.routed', resolve))
}

onEach(KINDS, (kind) =>
  test.group(`Failure routes | handoff (${kind})`, (group) => {
    let stage: Stage
    group.each.setup(async () => {
      stage = await Stage.on(kind)
      return () => stage.close()
    })

    test('OE-4: a run that would fail suspends on a handler run, which knows the failure; it is tagged, and told of', async ({
      assert,
    }) => {
      const app = await stage.app({ namespaces: ['mill'] })
      const { engine } = app
      const given: unknown[] = []
      registerLines(engine, async (ctx, failure) => {
        given.push(failure)
        return waitForGo(ctx)
      })
      await app.work()
      const event = routed(engine)
      await engine.start(LINE, { n: 1 }, 'r', { namespace: 'mill', tags: ['import'] })
      const { error, ...facts } = await event
      const place = { workflow: 'line', version: '1', namespace: 'mill' }
      assert.deepEqual(facts, { runId: 'r', ...place, handlerRunId: 'r.onError.0' })
      assert.equal(error.code, 'invalid_line')

      const run = await engine.getRun('r')
      assert.equal(run?.status, 'suspended')
      assert.equal(run?.phase, 'following')
      assert.sameMembers(run?.tags ?? [], ['import', 'onError:invalid_line'])
      const handler = await engine.getRun('r.onError.0')
      assert.equal(handler?.namespace, 'mill')
      assert.deepEqual(handler?.input, {
        runId: 'r',
        workflow: 'line',
        input: { n: 1 },
        error: { message: 'line 1 is invalid', code: 'invalid_line', details: { n: 1 } },
      })

      await engine.signal('go', 7)
      const end = await engine.waitForRun('r')
      assert.deepEqual(given[0], handler?.input)
      assert.equal(end.status, 'completed')
    })

    test('OE-4, OE-6: the run completes with the output of its handler, once its compensations have run', async ({
      assert,
    }) => {
      const app = await stage.app()
      const { engine } = app
      const done: string[] = []
      engine.register(
        'order',
        '1',
        async (ctx) => {
          const refund = { compensate: (charged: number) => void done.push(`refund ${charged}`) }
          await ctx.localStep('charge', () => 12, refund)
          throw new FatalError('no stock', 'no_stock')
        },
        { onError: [{ workflow: 'apologise' }] }
      )
      engine.register('apologise', '1', async (_, failure: OnErrorInput) => {
        done.push(`apologise for ${failure.error.code}`)
        return 'sorry'
      })
      await app.work()
      const handle = await engine.start({ name: 'order' }, null, 'r')
      assert.equal(await handle.result(), 'sorry')
      assert.deepEqual(done, ['refund 12', 'apologise for no_stock'])
      const run = await engine.getRun('r')
      assert.deepEqual(run?.tags, ['onError:*'])
      assert.isUndefined(run?.error)
      assert.isNull(run?.errorCode ?? null)
    })

    test('OE-6: the run fails with the error of its handler, as it is', async ({ assert }) => {
      const app = await stage.app()
      const { engine } = app
      registerLines(engine, async () => {
        throw new FatalError('the mill burns', 'fire', { floors: 3 })
      })
      await app.work()
      await engine.start(LINE, { n: 1 }, 'r')
      const run = await engine.waitForRun('r')
      assert.equal(run.status, 'failed')
      assert.equal(run.errorCode, 'fire')
      const handler = await engine.getRun('r.onError.0')
      assert.deepEqual(run.error, handler?.error)
      assert.deepInclude(run.error, { message: 'the mill burns', details: { floors: 3 } })
    })

    test('OE-6: a parent that awaits many lines gets one result for each', async ({ assert }) => {
      const app = await stage.app()
      const { engine } = app
      registerLines(engine)
      engine.register('file', '1', (ctx, lines: Line[]) => ctx.all('line', lines))
      await app.work()
      const lines = [0, 1, 2, 3].map((n) => ({ n }))
      const handle = await engine.start({ name: 'file', version: '1' }, lines)
      assert.deepEqual(await handle.result(), [
        { ok: 1, failed: 0 },
        { ok: 0, failed: 1 },
        { ok: 1, failed: 0 },
        { ok: 0, failed: 1 },
      ])
    })

    test('OE-6: a parent catches the error of the handler as that of its child', async ({
      assert,
    }) => {
      const app = await stage.app()
      const { engine } = app
      registerLines(engine, async () => {
        throw new FatalError('the mill burns', 'fire')
      })
      const caught: unknown[] = []
      engine.register('file', '1', async (ctx) => {
        try {
          return await ctx.child('line', { n: 1 }, 'line-1')
        } catch (error) {
          caught.push(error)
          return 'caught'
        }
      })
      await app.work()
      const handle = await engine.start({ name: 'file', version: '1' }, null)
      assert.equal(await handle.result(), 'caught')
      const [error] = caught
      assert.instanceOf(error, ChildError)
      assert.include(error, { code: 'fire', message: 'the mill burns', runId: 'line-1' })
    })

    test('OE-5: neither a wake nor a resume by hand runs the body of a run that follows its handler', async ({
      assert,
    }) => {
      const app = await stage.app()
      const { engine } = app
      const bodies = registerLines(engine, waitForGo)
      await app.work()
      const event = routed(engine)
      await engine.start(LINE, { n: 1 }, 'r')
      await event
      const before = bodies.count
      const { token } = await rowOf(engine, 'r')
      assert.isTrue(await engine.requeue('r'))
      await until(async () => {
        const woken = await rowOf(engine, 'r')
        return woken.status === 'suspended' && woken.token > token
      })
      await engine.signal('go', 1)
      const run = await engine.waitForRun('r')
      assert.equal(run.status, 'completed')
      assert.equal(bodies.count, before)
      const { records } = (await engine.getHistory('r'))!
      assert.deepEqual(
        records.map(({ kind: operation, generation }) => [operation, generation]).sort(),
        [
          ['handoff', 0],
          ['local_step', 0],
        ]
      )
    })

    test('OE-5, OE-7: the wait survives the loss of every process, and a recovery does not run the body', async ({
      assert,
    }) => {
      const first = await stage.app()
      registerLines(first.engine, waitForGo)
      await first.work()
      const event = routed(first.engine)
      await first.engine.start(LINE, { n: 1 }, 'r')
      await event
      await first.close()

      await stage.store.commit([{ type: 'wake', runId: 'r' }])
      await stage.dying.takeAndDie('line')
      const second = await stage.app()
      const bodies = registerLines(second.engine, waitForGo)
      await second.work()
      await second.engine.signal('go', 2)
      const run = await second.engine.waitForRun('r')
      assert.deepEqual(run.output, { failed: 2 })
      assert.equal(run.recoveryAttempts, 1)
      assert.equal(bodies.count, 0)
      assert.deepEqual(await second.engine.findStranded(), [])
    })

    test('OE-7: a handler has a history of its own, with steps that are retried, and links to the run it handles', async ({
      assert,
    }) => {
      const app = await stage.app()
      const { engine } = app
      let attempts = 0
      registerLines(engine, (ctx) =>
        ctx.localStep(
          'record',
          () => {
            if (++attempts < 3) throw new Error('the ledger is locked')
            return 'recorded'
          },
          { retries: 3, backoffMs: 1 }
        )
      )
      await app.work()
      const handle = await engine.start(LINE, { n: 1 }, 'r')
      assert.equal(await handle.result(), 'recorded')
      const handler = await engine.getRun('r.onError.0')
      assert.deepEqual(handler?.handles, { runId: 'r', as: 'on_error' })
      const history = await engine.getHistory('r.onError.0')
      assert.deepEqual(
        history?.records.map(({ name, attempts: made }) => [name, made]),
        [['record', 3]]
      )
      const own = await engine.getHistory('r')
      const handoff = own?.records.find(({ kind: operation }) => operation === 'handoff')
      assert.equal(handoff?.name, 'onError:r.onError.0')
    })

    test('OE-8: failing, tagging, suspending and creating the handler run are one write', async ({
      assert,
    }) => {
      const app = await stage.app()
      const { engine } = app
      registerLines(engine, waitForGo)
      const commits = internalsOf(engine).commits
      const write = commits.write.bind(commits)
      const writes: Parameters<typeof write>[0][] = []
      commits.write = (change) => {
        writes.push(change)
        return write(change)
      }
      await app.work()
      const event = routed(engine)
      await engine.start(LINE, { n: 1 }, 'r')
      await event
      const turns = writes.filter((change) => change.type === 'turn' && change.runId === 'r')
      assert.lengthOf(turns, 1)
      const [turn] = turns
      if (turn?.type !== 'turn' || turn.end.kind !== 'follow') return assert.fail('not routed')
      assert.equal(turn.end.tag, 'onError:invalid_line')
      assert.equal(turn.end.errorCode, 'invalid_line')
      assert.deepEqual(
        turn.children.map(({ run }) => run.id),
        ['r.onError.0']
      )
      assert.deepEqual(
        turn.opened.map(({ target }) => target),
        ['r.onError.0']
      )
      assert.deepEqual(
        turn.records.map(({ status }) => status),
        ['failed']
      )
    })

    test('OE-8: nothing of it is written by a process that has lost the run', async ({
      assert,
    }) => {
      const app = await stage.app()
      const { engine } = app
      const reached = Promise.withResolvers<void>()
      const go = Promise.withResolvers<void>()
      engine.register(
        'slow',
        '1',
        (ctx) =>
          ctx.localStep('work', async () => {
            reached.resolve()
            await go.promise
            throw new FatalError('no', 'no')
          }),
        { onError: [{ workflow: 'apologise' }] }
      )
      engine.register('apologise', '1', async () => 'sorry')
      await app.work()
      await engine.start({ name: 'slow' }, null, 'r')
      await reached.promise
      await stage.store.commit([
        {
          type: 'cancel',
          runId: 'r',
          compensate: false,
          error: '{"v":null}',
          errorCode: 'cancelled',
        },
      ])
      go.resolve()
      await app.close()
      const run = await stage.store.getRun('r')
      assert.equal(run?.status, 'cancelled')
      assert.deepEqual(run?.tags, [])
      assert.isNull(await stage.store.getRun('r.onError.0'))
    })

    test('a signal that the body waited for beside its failure goes to whoever waits next', async ({
      assert,
    }) => {
      const app = await stage.app()
      const { engine } = app
      engine.register(
        'racing',
        '1',
        async (ctx) => {
          const parcel = ctx.waitForSignal('parcel')
          await Promise.race([parcel, ctx.sleep(5)])
          throw new FatalError('too late', 'late')
        },
        { onError: [{ workflow: 'collect' }] }
      )
      engine.register('collect', '1', (ctx) => ctx.waitForSignal('parcel'))
      await app.work()
      const event = routed(engine)
      await engine.start({ name: 'racing' }, null, 'r')
      await event
      await engine.advanceClock(5)
      await engine.signal('parcel', 'books')
      const run = await engine.waitForRun('r')
      assert.equal(run.output, 'books')
    })

    test('another run that has the id of the handler leaves the failure unrouted', async ({
      assert,
    }) => {
      const app = await stage.app()
      const { engine } = app
      registerLines(engine)
      engine.register('other', '1', async () => 'other')
      const reasons: string[] = []
      engine.on('run.unrouted', ({ reason }) => reasons.push(reason))
      await engine.start({ name: 'other' }, null, 'r.onError.0')
      await app.work()
      await engine.start(LINE, { n: 1 }, 'r')
      const run = await engine.waitForRun('r')
      assert.equal(run.status, 'failed')
      assert.equal(run.errorCode, 'invalid_line')
      assert.lengthOf(reasons, 1)
      assert.match(reasons[0]!, /another run has the id "r\.onError\.0"/)
    })
  })
)

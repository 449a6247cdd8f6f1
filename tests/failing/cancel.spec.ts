import { test } from '@japa/runner'
import { encode } from '../../src/core/payload.ts'
import { internalsOf } from '../../src/engine/engine.ts'
import { E_RUN_NOT_FOUND, FatalError } from '../../src/errors.ts'
import { DIE, newWorker, turn } from '../../src/testing/conformance/writes.ts'
import type { WorkflowCtx } from '../../src/types/context.ts'
import { rowOf } from '../support/run_row.ts'
import { KINDS, onEach } from '../stores/databases.ts'
import { Gate } from '../support/gate.ts'
import { reaches } from '../support/reaches.ts'
import { until } from '../support/until.ts'
import { MAIN, Site, statusOf, undone } from './site.ts'
import { UNDO, undoSoon } from './undo_steps.ts'

/** Nothing is found by looking now and then, only by being told. */
const TOLD_ONLY = { pollMs: 60_000, idlePollMs: 60_000, leaseMs: 120_000, hangMs: 180_000 }

onEach(KINDS, (kind) =>
  test.group(`Cancel, on ${kind}`, (group) => {
    let site: Site
    let calls: unknown[]
    group.each.setup(async () => {
      site = await Site.on(kind)
      calls = []
      UNDO.reset()
      return () => site.close()
    })

    /** A step that waits until its signal aborts. */
    const untilAborted = (begun: Gate) => (step: { signal: AbortSignal }) =>
      begun.pass(step.signal).catch(() => {
        calls.push('aborted')
        return 'too late'
      })

    test('a run that executes is over with that write: its step is aborted, what comes later is refused (case 26)', async ({
      assert,
    }) => {
      const begun = new Gate()
      let signal: AbortSignal | undefined
      const cancelled: string[] = []
      const { engine } = await site.working({
        main: async (ctx) => {
          signal = ctx.abortSignal
          await ctx.localStep('a', () => void calls.push('a'))
          await ctx.localStep('slow', untilAborted(begun))
          await ctx.localStep('never', () => void calls.push('never'))
        },
      })
      engine.on('run.cancelled', (event) => cancelled.push(event.runId))
      const { runId } = await engine.start(MAIN)
      await begun.reached()
      assert.isFalse(signal?.aborted)
      assert.isTrue(await engine.cancel(runId, { reason: 'not wanted' }))
      const run = await engine.getRun(runId)
      assert.deepEqual(
        [run?.status, run?.errorCode, run?.error?.message, run?.owner],
        ['cancelled', 'cancelled', 'not wanted', null]
      )
      await until(() => calls.includes('aborted'))
      assert.propertyVal(signal?.reason, 'code', 'cancelled')
      assert.isFalse(await engine.cancel(runId), 'it had ended')
      assert.deepEqual(await engine.getRun(runId), run)
      assert.deepEqual(calls, ['a', 'aborted'])
      assert.deepEqual(cancelled, [runId])
      await assert.rejects(() => engine.cancel('nobody'), E_RUN_NOT_FOUND)
    })

    test('from another process aborts the step when that tells of it', async ({ assert }) => {
      const begun = new Gate()
      await site.working({ main: (ctx) => ctx.localStep('slow', untilAborted(begun)) }, TOLD_ONLY)
      const { engine } = await site.app()
      const { runId } = await engine.start({ name: 'main', version: '1' })
      await begun.reached()
      assert.isTrue(await engine.cancel(runId))
      await until(() => calls.includes('aborted'))
      assert.equal(await statusOf(engine, runId), 'cancelled')
    })

    test('with compensate from another process aborts the step before it is undone', async ({
      assert,
    }) => {
      const begun = new Gate()
      const reasons: unknown[] = []
      await site.working(
        {
          main: (ctx) =>
            ctx.localStep(
              'slow',
              (step) => {
                step.signal.addEventListener('abort', () => reasons.push(step.signal.reason))
                return untilAborted(begun)(step)
              },
              { compensate: () => void calls.push('undone') }
            ),
        },
        TOLD_ONLY
      )
      const { engine } = await site.app()
      const { runId } = await engine.start({ name: 'main', version: '1' })
      await begun.reached()
      await engine.cancel(runId, { compensate: true })
      const run = await engine.waitForRun(runId)
      assert.equal(run.status, 'cancelled')
      assert.deepEqual(calls, ['aborted', 'undone'])
      assert.containsSubset(reasons, [{ code: 'cancelled' }])
    })

    /** Without notices, another process hears of it only when it claims the run. */
    const CANCELS = [
      { compensate: false, from: 'the same' },
      { compensate: true, from: 'the same' },
      { compensate: true, from: 'another' },
    ]
    for (const { compensate, from } of CANCELS)
      test(`of a run that waits${compensate ? ' with compensate' : ''}, from ${from} process, aborts ctx.abortSignal as cancelled`, async ({
        assert,
      }) => {
        const signals = new Set<AbortSignal>()
        const own = await site.working(
          {
            main: async (ctx) => {
              signals.add(ctx.abortSignal)
              await ctx.waitForSignal('never')
            },
          },
          TOLD_ONLY
        )
        const { runId } = await own.engine.start(MAIN)
        await reaches(own.engine, runId, 'suspended')
        const { engine } = from === 'another' ? await site.app() : own
        const [signal] = signals
        await engine.cancel(runId, { compensate })
        await engine.waitForRun(runId)
        await until(() => signal?.aborted === true)
        assert.propertyVal(signal?.reason, 'code', 'cancelled')
      })

    test('a run that waits, is pending or is blocked ends at once', async ({ assert }) => {
      const { engine } = await site.working({
        main: (ctx) => ctx.waitForSignal('go'),
        foreign: async (ctx) => {
          await new Promise((resolve) => setImmediate(resolve))
          await ctx.localStep('a', () => {})
        },
      })
      await engine.start(MAIN, null, 'waiting')
      await engine.start({ name: 'nobody-knows', version: '1' }, null, 'pending')
      await engine.start('foreign', null, 'blocked')
      await reaches(engine, 'waiting', 'suspended')
      await reaches(engine, 'blocked', 'blocked')
      for (const runId of ['waiting', 'pending', 'blocked']) {
        assert.isTrue(await engine.cancel(runId))
        const run = await engine.getRun(runId)
        assert.deepEqual([run?.status, run?.dueAt], ['cancelled', null])
        const { waits } = (await engine.getHistory(runId)) ?? {}
        assert.deepEqual(waits, [])
      }
      assert.deepEqual(await engine.signal('go'), { delivered: false })
    })

    test('the children it awaits go with it at every level, those it only started do not (case 27)', async ({
      assert,
    }) => {
      const begun = new Gate()
      const { engine } = await site.working({
        main: async (ctx) => {
          await ctx.startChild('leaf', 'started')
          await Promise.all([ctx.child('middle'), ctx.all('leaf', ['x', 'y'])])
        },
        middle: async (ctx) => {
          await ctx.startChild('leaf', 'also started')
          await Promise.all([ctx.child('leaf', 'z'), ctx.child('working')])
        },
        working: (ctx) => ctx.localStep('slow', untilAborted(begun)),
        leaf: (ctx, name: string) => ctx.waitForSignal(`go-${name.replace(' ', '-')}`),
      })
      await engine.start(MAIN, null, 'p')
      const awaited = ['p.child.1', 'p.child.2.0', 'p.child.2.1', 'p.child.1.child.1']
      const started = ['p.child.0', 'p.child.1.child.0']
      for (const id of [...awaited, ...started]) await reaches(engine, id, 'suspended')
      await begun.reached()
      const cancelled: string[] = []
      engine.on('run.cancelled', (event) => cancelled.push(event.runId))
      await engine.cancel('p', { reason: 'all of it' })
      for (const id of ['p', ...awaited, 'p.child.1.child.2']) {
        const run = await engine.getRun(id)
        assert.deepEqual([id, run?.status, run?.error?.message], [id, 'cancelled', 'all of it'])
      }
      for (const id of started) assert.equal(await statusOf(engine, id), 'suspended')
      assert.sameMembers(cancelled, ['p', ...awaited, 'p.child.1.child.2'])
      await until(() => calls.includes('aborted'))
      await engine.signal('go-started')
      await engine.signal('go-also-started')
      for (const id of started) {
        const run = await engine.waitForRun(id)
        assert.equal(run.status, 'completed')
      }
    })

    test('a run that crashes its worker at every pickup ends for good (case 26)', async ({
      assert,
    }) => {
      const { engine } = await site.app()
      const { runId } = await engine.start({ name: 'main', version: '1' })
      const { store: open } = internalsOf(engine)
      const store = await open()
      const { claimKey } = await rowOf(engine, runId)
      for (const instance of ['w1', 'w2']) {
        await store.registerWorker(newWorker(instance, { leaseMs: 1_000 }))
        assert.lengthOf(await store.claim({ owner: instance, claimKeys: [claimKey], limit: 1 }), 1)
        await engine.advanceClock(2_000)
        await store.recoverExpired({ suspectFrom: 3 })
      }
      assert.isTrue(await engine.cancel(runId))
      const run = await engine.getRun(runId)
      assert.deepEqual([run?.status, run?.dueAt, run?.recoveryAttempts], ['cancelled', null, 1])
      const { engine: other } = await site.working({ main: () => void calls.push('executed') })
      assert.deepEqual(await other.getRun(runId), run)
      assert.deepEqual(calls, [])
    })

    test('with compensate undoes what was done, what was in flight too, and ends cancelled', async ({
      assert,
    }) => {
      const begun = new Gate()
      const undo = (name: string) => (output: unknown) => void calls.push([name, output])
      const cancelled: string[] = []
      const { engine } = await site.working({
        main: async (ctx) => {
          await ctx.localStep('a', () => 1, { compensate: undo('a') })
          await ctx.localStep('b', () => 2, { compensate: undoSoon })
          await ctx.localStep('slow', untilAborted(begun), { compensate: undo('slow') })
          await ctx.localStep('never', () => void calls.push('never'))
        },
      })
      engine.on('run.cancelled', (event) => cancelled.push(event.runId))
      const { runId } = await engine.start(MAIN)
      await begun.reached()
      assert.isTrue(await engine.cancel(runId, { compensate: true, reason: 'not wanted' }))
      const run = await engine.waitForRun(runId)
      assert.deepEqual(
        [run.status, run.errorCode, run.error?.message],
        ['cancelled', 'cancelled', 'not wanted']
      )
      assert.sameDeepMembers(calls, ['aborted', ['slow', undefined], ['a', 1]])
      assert.deepEqual(
        UNDO.calls.map(({ output }) => output),
        [2]
      )
      assert.deepEqual(await undone(engine, runId), [
        ['slow', 'completed', 1],
        ['b', 'completed', 1],
        ['a', 'completed', 1],
      ])
      assert.deepEqual(cancelled, [runId])
      assert.isFalse(await engine.requeue(runId))
    })

    test('with compensate undoes what a run that waits has done, and its signals go to others', async ({
      assert,
      cleanup,
    }) => {
      const undoing = new Gate()
      cleanup(() => undoing.open())
      const bodies = {
        main: async (ctx: WorkflowCtx) => {
          await ctx.localStep('a', () => 1, { compensate: () => undoing.pass() })
          await Promise.all([ctx.waitForSignal('word'), ctx.child('inner')])
        },
        inner: async (ctx: WorkflowCtx) => {
          await ctx.localStep('b', () => 2, {
            compensate: (output) => void calls.push(['b', output]),
          })
          await ctx.sleep('1 hour')
        },
        other: (ctx: WorkflowCtx) => ctx.waitForSignal('word'),
      }
      const first = await site.working(bodies)
      const { runId } = await first.engine.start(MAIN)
      await reaches(first.engine, `${runId}.child.2`, 'suspended')
      await reaches(first.engine, runId, 'suspended')
      await site.stop(first.app)
      const { app, engine } = await site.app(bodies)
      await engine.cancel(runId, { compensate: true })
      assert.deepEqual(await engine.signal('word', 'hello'), { delivered: true })
      await app.work()
      await undoing.reached()
      const other = await engine.start<string>('other')
      assert.equal(await other.result(), 'hello')
      undoing.open()
      for (const id of [runId, `${runId}.child.2`]) {
        const run = await engine.waitForRun(id)
        assert.equal(run.status, 'cancelled')
      }
      assert.deepEqual(calls, [['b', 2]])
    })

    test('with compensate of a run that has done nothing ends it at once', async ({ assert }) => {
      const { engine } = await site.app()
      const { runId } = await engine.start({ name: 'main', version: '1' })
      assert.isTrue(await engine.cancel(runId, { compensate: true }))
      const run = await engine.getRun(runId)
      assert.deepEqual([run?.status, run?.phase], ['cancelled', 'body'])
    })

    test('with compensate of a run that is undoing its steps for a failure lets it go on, each compensation once', async ({
      assert,
    }) => {
      const gate = new Gate()
      const { engine } = await site.working({
        main: async (ctx) => {
          await ctx.localStep('book', () => 'booked', { compensate: () => gate.pass() })
          await ctx.localStep('charge', () => {
            throw new FatalError('no seats', 'sold_out')
          })
        },
      })
      const { runId } = await engine.start(MAIN)
      await gate.reached()
      assert.isTrue(await engine.cancel(runId, { compensate: true }))
      gate.open()
      const run = await engine.waitForRun(runId)
      assert.deepEqual([run.status, run.errorCode, gate.arrived], ['failed', 'sold_out', 1])
    })

    test('without compensate, of a run that is undoing its steps, ends it where it is', async ({
      assert,
      cleanup,
    }) => {
      const undoing = new Gate()
      cleanup(() => undoing.open())
      const { engine } = await site.working({
        main: async (ctx) => {
          await ctx.localStep('a', () => 1, { compensate: () => void calls.push('a') })
          await ctx.localStep('b', () => 2, {
            compensate: (_output, { signal }) => undoing.pass(signal),
          })
          await ctx.localStep('fail', () => {
            throw new FatalError('no')
          })
        },
      })
      const { runId } = await engine.start(MAIN)
      await undoing.reached()
      await engine.cancel(runId)
      const run = await engine.getRun(runId)
      assert.deepEqual([run?.status, run?.errorCode], ['cancelled', 'cancelled'])
      assert.deepEqual(calls, [])
      assert.deepEqual(await undone(engine, runId), [])
    })

    test('of a run that follows its handler cancels the handler too', async ({ assert }) => {
      const { app, engine } = await site.app()
      engine.register('handler', '1', (ctx) => ctx.waitForSignal('never'))
      engine.register(
        'main',
        '1',
        (ctx) =>
          ctx.localStep('fail', () => {
            throw new FatalError('no')
          }),
        { onError: [{ workflow: 'handler' }] }
      )
      await app.work()
      const { runId } = await engine.start(MAIN)
      await reaches(engine, `${runId}.onError.0`, 'suspended')
      await engine.cancel(runId)
      for (const id of [runId, `${runId}.onError.0`])
        assert.equal(await statusOf(engine, id), 'cancelled')
    })

    test('a parent sees that its child was cancelled, or is dead, by status and code', async ({
      assert,
    }) => {
      const main = async (ctx: WorkflowCtx) => {
        const results = await ctx.allSettled({ name: 'waiting', version: '1' }, [1, 2])
        return results.map((result) => {
          if (result.status === 'fulfilled') return result.value
          const { code, status, runId } = result.reason
          return [code, status, runId]
        })
      }
      const waiting = (ctx: WorkflowCtx) => ctx.waitForSignal('never')
      const first = await site.working({ main, waiting })
      await first.engine.start(MAIN, null, 'p')
      for (const index of [0, 1]) await reaches(first.engine, `p.child.0.${index}`, 'suspended')
      await first.engine.cancel('p.child.0.0')
      await site.stop(first.app)
      const { app, engine } = await site.app({ main })
      const store = await internalsOf(engine).store()
      const { claimKey } = await rowOf(engine, 'p.child.0.1')
      await store.registerWorker(newWorker('w'))
      await engine.requeue('p.child.0.1')
      const [claimed] = await store.claim({ owner: 'w', claimKeys: [claimKey], limit: 1 })
      const error = encode({ name: 'Lost', message: 'no', code: DIE.errorCode })
      await store.commit([turn(claimed!, { end: { ...DIE, error } })])
      await app.work()
      const run = await engine.waitForRun('p')
      assert.equal(run.status, 'completed')
      assert.deepEqual(run.output, [
        ['cancelled', 'cancelled', 'p.child.0.0'],
        ['max_recovery_attempts', 'dead', 'p.child.0.1'],
      ])
    })
  })
)

import { test } from '@japa/runner'
import { encodeError } from '../../src/core/serialized_error.ts'
import { internalsOf } from '../../src/engine/engine.ts'
import { FatalError } from '../../src/errors.ts'
import type { WorkflowCtx } from '../../src/types/context.ts'
import { newWorker, record, sleep, turn } from '../../src/testing/conformance/writes.ts'
import { rowOf } from '../support/run_row.ts'
import { KINDS, onEach } from '../stores/databases.ts'
import { Gate } from '../support/gate.ts'
import { reaches } from '../support/reaches.ts'
import { until } from '../support/until.ts'
import { live, MAIN, Site, undone } from './site.ts'
import { UNDO, undoLater } from './undo_steps.ts'

const MINUTE = 60_000
const UNWIND = {
  kind: 'unwind',
  error: encodeError({ name: 'Error', message: 'no' }),
  errorCode: 'Error',
} as const

onEach(KINDS, (kind) =>
  test.group(`Unwinding, on ${kind}`, (group) => {
    let site: Site
    let calls: unknown[][]
    group.each.setup(async () => {
      site = await Site.on(kind)
      calls = []
      UNDO.reset()
      return () => site.close()
    })
    const undo = (name: string) => (output: unknown) => void calls.push([name, output])
    const fails = () => {
      throw new FatalError('no seats', 'sold_out')
    }

    test('a parallel step in flight is aborted, and undone with what it came to', async ({
      assert,
    }) => {
      const { engine } = await site.working({
        main: async (ctx) => {
          const begun = new Gate()
          const slow = ctx.localStep(
            'slow',
            async ({ signal }) => {
              await begun.pass(signal).catch(() => {})
              return 'in part'
            },
            { compensate: undo('slow') }
          )
          await Promise.all([slow, ctx.localStep('fail', () => begun.reached().then(fails))])
        },
      })
      const { runId } = await engine.start(MAIN)
      const run = await engine.waitForRun(runId)
      assert.deepEqual([run.status, run.errorCode], ['failed', 'sold_out'])
      assert.deepEqual(calls, [['slow', 'in part']])
      const records = await live(engine, runId)
      assert.deepEqual(
        records.map(({ seq, status, ordinal }) => [seq, status, ordinal]),
        [
          [-1, 'completed', null],
          [0, 'completed', null],
          [1, 'failed', 0],
        ]
      )
    })

    test('a parallel step that the abort makes fail is not attempted again, and is undone without an output', async ({
      assert,
    }) => {
      let attempts = 0
      const { engine } = await site.working({
        main: async (ctx) => {
          const begun = new Gate()
          const slow = ctx.localStep(
            'slow',
            async ({ signal }) => {
              attempts++
              await begun.pass(signal)
            },
            { compensate: undo('slow'), backoffMs: 1 }
          )
          await Promise.all([slow, ctx.localStep('fail', () => begun.reached().then(fails))])
        },
      })
      const { runId } = await engine.start(MAIN)
      await engine.waitForRun(runId)
      assert.deepEqual(calls, [['slow', undefined]])
      assert.equal(attempts, 1)
      const [, slow] = await live(engine, runId)
      assert.deepEqual([slow?.name, slow?.status], ['slow', 'abandoned'])
    })

    test('steps that an earlier process has done are undone too, and nothing else of the body is begun', async ({
      assert,
    }) => {
      const begun: string[] = []
      const bodies = (isFailing: boolean) => ({
        main: async (ctx: WorkflowCtx) => {
          await ctx.localStep('a', () => void begun.push('a'), { compensate: undo('a') })
          await ctx.waitForSignal('go')
          try {
            await ctx.localStep('fail', isFailing ? fails : () => {})
          } finally {
            // A step of a body that has failed is a step like any other.
            await ctx.localStep('clean', () => void begun.push('clean'), {
              compensate: undo('clean'),
            })
          }
        },
      })
      const first = await site.working(bodies(true))
      const { runId } = await first.engine.start(MAIN)
      await reaches(first.engine, runId, 'suspended')
      await site.stop(first.app)
      const { engine } = await site.working(bodies(true))
      await engine.signal('go')
      const run = await engine.waitForRun(runId)
      assert.deepEqual([run.status, run.errorCode], ['failed', 'sold_out'])
      assert.deepEqual(begun, ['a', 'clean'])
      assert.deepEqual(calls, [
        ['clean', undefined],
        ['a', undefined],
      ])
    })

    for (const [change, other] of [
      ['asks for something else', 'renamed'],
      ['ends before it has asked for everything', 'shorter'],
    ] as const)
      test(`a body that ${change} blocks the run, which keeps its error and goes on with the right code`, async ({
        assert,
      }) => {
        UNDO.answer = ({ attempt }) => {
          if (attempt === 1) throw new Error('not yet')
        }
        const body = (code: 'right' | 'renamed' | 'shorter') => ({
          main: async (ctx: WorkflowCtx) => {
            await ctx.localStep(code === 'renamed' ? 'z' : 'a', () => 1, { compensate: undo('a') })
            if (code === 'shorter') fails()
            await ctx.localStep('b', () => 2, { compensate: undoLater })
            await ctx.localStep('fail', fails)
          },
        })
        const first = await site.working(body('right'))
        const { runId } = await first.engine.start(MAIN)
        await until(() => UNDO.calls.length === 1)
        await reaches(first.engine, runId, 'suspended')
        await site.stop(first.app)
        const second = await site.working(body(other))
        await second.engine.advanceClock(MINUTE)
        await reaches(second.engine, runId, 'blocked')
        const blocked = await second.engine.getRun(runId)
        assert.deepEqual(
          [blocked?.phase, blocked?.errorCode, blocked?.error?.message],
          ['unwinding', 'sold_out', 'no seats']
        )
        assert.deepEqual(await undone(second.engine, runId), [])
        await site.stop(second.app)
        const { engine } = await site.working(body('right'))
        const run = await engine.waitForRun(runId)
        assert.deepEqual(
          [run.status, run.errorCode, run.error?.message],
          ['failed', 'sold_out', 'no seats']
        )
        assert.deepEqual(calls, [['a', 1]])
      })

    test('a run whose child was cancelled fails, when it has undone its steps', async ({
      assert,
    }) => {
      const { engine } = await site.working({
        main: async (ctx) => {
          await ctx.localStep('a', () => 1, { compensate: undo('a') })
          await ctx.child('waiting')
        },
        waiting: (ctx) => ctx.waitForSignal('never'),
      })
      const { runId } = await engine.start(MAIN)
      await reaches(engine, `${runId}.child.1`, 'suspended')
      await engine.cancel(`${runId}.child.1`, { reason: 'not wanted' })
      const run = await engine.waitForRun(runId)
      assert.deepEqual(
        [run.status, run.errorCode, run.error?.message],
        ['failed', 'cancelled', 'not wanted']
      )
      assert.deepEqual(calls, [['a', 1]])
    })

    test('a run whose schema throws an error with the code of a cancel fails, when it has undone its steps', async ({
      assert,
    }) => {
      const main = async (ctx: WorkflowCtx) => {
        await ctx.localStep('a', () => 1, { compensate: undo('a') })
        await ctx.waitForSignal('go')
      }
      const before = await site.working({ main })
      const { runId } = await before.engine.start(MAIN)
      await reaches(before.engine, runId, 'suspended')
      await site.stop(before.app)
      const { app, engine } = await site.app()
      const validate = () => Promise.reject(new FatalError('no answer', 'cancelled'))
      const input = { '~standard': { version: 1 as const, vendor: 'test', validate } }
      engine.register('main', '1', main, { input })
      await app.work()
      await engine.signal('go')
      const run = await engine.waitForRun(runId)
      assert.deepEqual(
        [run.status, run.errorCode, run.error?.message],
        ['failed', 'cancelled', 'no answer']
      )
      assert.deepEqual(calls, [['a', 1]])
    })

    test('nobody takes a signal that comes for a wait of its body: the next who waits gets it', async ({
      assert,
      cleanup,
    }) => {
      const undoing = new Gate()
      cleanup(() => undoing.open())
      const { engine } = await site.working({
        main: async (ctx) => {
          const signal = ctx.waitForSignal('word')
          const steps = async () => {
            await ctx.localStep('a', () => 1, { compensate: () => undoing.pass() })
            await ctx.waitForSignal('go')
            await ctx.localStep('fail', fails)
          }
          await Promise.all([signal, steps()])
        },
        other: (ctx) => ctx.waitForSignal('word'),
      })
      const { runId } = await engine.start(MAIN)
      await reaches(engine, runId, 'suspended')
      await engine.signal('go')
      await undoing.reached()
      assert.deepEqual(await engine.signal('word', 'hello'), { delivered: false })
      const other = await engine.start<string>('other')
      assert.equal(await other.result(), 'hello')
      undoing.open()
      const run = await engine.waitForRun(runId)
      assert.equal(run.status, 'failed')
    })

    test('a run that follows its handler has no waits of its body any more (P4)', async ({
      assert,
    }) => {
      const { engine } = await site.app()
      const { app } = await site.app()
      engine.register('handler', '1', (ctx) => ctx.waitForSignal('answer'))
      app.engine.register('handler', '1', (ctx) => ctx.waitForSignal('answer'))
      const main = async (ctx: WorkflowCtx) => {
        await Promise.all([
          ctx.sleep('1 hour'),
          ctx.waitForSignal('word'),
          ctx.localStep('fail', fails),
        ])
      }
      app.engine.register('main', '1', main, { onError: [{ workflow: 'handler' }] })
      engine.register('main', '1', main, { onError: [{ workflow: 'handler' }] })
      await app.work()
      const { runId } = await engine.start(MAIN)
      await reaches(engine, `${runId}.onError.0`, 'suspended')
      const { waits = [] } = (await engine.getHistory(runId)) ?? {}
      assert.deepEqual(
        waits.map((wait) => wait.kind),
        ['handoff']
      )
      assert.deepEqual(await engine.findStranded(), [])
      assert.deepEqual(await engine.signal('word', 'hello'), { delivered: false })
      await engine.signal('answer', 'handled')
      const run = await engine.waitForRun(runId)
      assert.deepEqual([run.status, run.output], ['completed', 'handled'])
    })

    test('a worker that stops between two attempts of a compensation hands the run back at once, with its attempts', async ({
      assert,
    }) => {
      const failed = Promise.withResolvers<void>()
      const bodies = (compensate: () => void) => ({
        main: async (ctx: WorkflowCtx) => {
          await ctx.localStep('a', () => 1, { compensate })
          await ctx.localStep('fail', fails)
        },
      })
      const first = await site.working(
        bodies(() => {
          failed.resolve()
          throw new Error('not yet')
        })
      )
      const { runId } = await first.engine.start(MAIN)
      await failed.promise
      await site.stop(first.app)
      const { engine } = await site.app(bodies(() => undefined))
      const handedBack = await engine.getRun(runId)
      assert.deepEqual([handedBack?.status, handedBack?.phase], ['suspended', 'unwinding'])
      const second = await site.working(bodies(() => undefined))
      const run = await second.engine.waitForRun(runId)
      assert.deepEqual([run.status, run.recoveryAttempts], ['failed', 0])
      assert.deepEqual(await undone(engine, runId), [['a', 'completed', 2]])
    })

    /** A run that two workers have lost while it undid step "a". */
    async function lostTwice() {
      const { engine } = await site.app()
      const { runId } = await engine.start({ name: 'main', version: '1' })
      const store = await internalsOf(engine).store()
      const { claimKey } = await rowOf(engine, runId)
      for (const [instance, changes] of [
        ['w1', { records: [record(0, { name: 'a' })], end: UNWIND }],
        ['w2', { opened: [{ ...sleep(-1, 0), kind: 'compensation', name: 'a', dueIn: null }] }],
      ] as const) {
        await store.registerWorker(newWorker(instance, { leaseMs: 1_000 }))
        const [row] = await store.claim({ owner: instance, claimKeys: [claimKey], limit: 1 })
        await store.commit([turn(row!, changes)])
        await engine.advanceClock(2_000)
        await store.recoverExpired({ suspectFrom: instance === 'w1' ? null : 2 })
      }
      return runId
    }

    test('of a run that may be what kills its workers, each compensation is written before it is begun (DL-11)', async ({
      assert,
    }) => {
      const undoing = new Gate()
      const runId = await lostTwice()
      const { engine } = await site.working({
        main: async (ctx) => {
          await ctx.localStep('a', () => {}, { compensate: () => undoing.pass() })
          throw new FatalError('no')
        },
      })
      await undoing.reached()
      const { waits = [] } = (await engine.getHistory(runId)) ?? {}
      assert.deepEqual(
        waits.map((wait) => [wait.seq, wait.kind, wait.name, wait.dueAt]),
        [[-1, 'compensation', 'a', null]]
      )
      undoing.open()
      const run = await engine.waitForRun(runId)
      assert.deepEqual([run.status, run.recoveryAttempts], ['failed', 2])
      assert.deepEqual(await undone(engine, runId), [['a', 'completed', 1]])
    })

    test('a run that was lost once too often while it undid a step is dead, and the step is named (DL-11)', async ({
      assert,
    }) => {
      const runId = await lostTwice()
      const { engine } = await site.working({ main: () => {} }, { maxRecoveryAttempts: 1 })
      const run = await engine.waitForRun(runId)
      assert.deepEqual([run.status, run.errorCode], ['dead', 'max_recovery_attempts'])
      assert.include(run.error?.message, '"a", being undone')
    })
  })
)

test.group('Unwinding', () => {
  test('waits a bounded time for a step that does not heed its abort, and undoes it without an output', async ({
    assert,
    cleanup,
  }) => {
    const site = await Site.on('memory')
    cleanup(() => site.close())
    const deaf = new Gate()
    cleanup(() => deaf.open())
    const undoneWith = Promise.withResolvers<unknown>()
    const { engine } = await site.working({
      main: async (ctx) => {
        const slow = ctx.localStep('slow', () => deaf.pass().then(() => 'late'), {
          compensate: (output) => undoneWith.resolve(output),
        })
        const fail = ctx.localStep('fail', async () => {
          await deaf.reached()
          throw new FatalError('no')
        })
        await Promise.all([slow, fail])
      },
    })
    const { runId } = await engine.start(MAIN)
    assert.isUndefined(await undoneWith.promise)
    const run = await engine.waitForRun(runId)
    assert.equal(run.status, 'failed')
  }).timeout(20_000)
})

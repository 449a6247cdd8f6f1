import { test } from '@japa/runner'
import { E_RUN_NOT_FOUND, FatalError } from '../../src/errors.ts'
import type { WorkflowCtx } from '../../src/types/context.ts'
import { rowOf } from '../support/run_row.ts'
import { KINDS, onEach } from '../stores/databases.ts'
import { reaches } from '../support/reaches.ts'
import { until } from '../support/until.ts'
import { live, MAIN, Site } from './site.ts'

onEach(KINDS, (kind) =>
  test.group(`Requeue, on ${kind}`, (group) => {
    let site: Site
    let calls: string[]
    /** Names of steps that fail now. */
    let broken: Set<string>
    group.each.setup(async () => {
      site = await Site.on(kind)
      calls = []
      broken = new Set()
      return () => site.close()
    })

    /** A step that notes its call and fails while it is broken. */
    const step =
      (name: string, params: { code?: string } = {}) =>
      () => {
        calls.push(name)
        if (broken.has(name)) throw new FatalError(`${name} is broken`, params.code ?? name)
        return name
      }
    const does = (ctx: WorkflowCtx, name: string) => ctx.localStep(name, step(name))

    test('completed steps stay, the failed one runs again with its whole budget of attempts (DL-9)', async ({
      assert,
    }) => {
      const attempts: number[] = []
      let isBroken = true
      const { engine } = await site.working({
        main: async (ctx) => {
          const a = await does(ctx, 'a')
          const at = ctx.now()
          const b = await ctx.localStep(
            'b',
            ({ attempt }) => {
              attempts.push(attempt)
              if (isBroken || attempt < 3) throw new Error('not yet')
              return 'b'
            },
            { retries: 2, backoffMs: 1 }
          )
          return [a, b, at.getTime()]
        },
      })
      const { runId } = await engine.start(MAIN)
      const failed = await engine.waitForRun(runId)
      assert.deepEqual([failed.status, failed.error?.message], ['failed', 'not yet'])
      isBroken = false
      assert.isTrue(await engine.requeue(runId))
      const run = await engine.waitForRun(runId)
      const [, at] = await live(engine, runId)
      assert.deepEqual([run.status, run.error], ['completed', undefined])
      assert.deepEqual(run.output.slice(0, 2), ['a', 'b'])
      assert.equal(at?.output, run.output[2], 'the time that was read stays')
      assert.deepEqual(calls, ['a'])
      assert.deepEqual(attempts, [1, 2, 3, 1, 2, 3])
      const { records = [] } = (await engine.getHistory(runId)) ?? {}
      assert.deepEqual(
        records.map(({ generation, seq, status }) => [generation, seq, status]),
        [
          [0, 0, 'completed'],
          [0, 1, 'completed'],
          [0, 2, 'completed'],
          [1, 2, 'failed'],
        ]
      )
    })

    test('a run whose parallel step stays can fail and be requeued again and again (P3)', async ({
      assert,
    }) => {
      const { engine } = await site.working({
        main: async (ctx) => {
          const [first, second] = await Promise.allSettled([does(ctx, 'a'), does(ctx, 'b')])
          await does(ctx, 'c')
          if (first.status === 'rejected') throw first.reason
          return [first.value, second.status]
        },
      })
      broken.add('a')
      const { runId } = await engine.start(MAIN)
      for (let time = 1; time <= 3; time++) {
        const run = await engine.waitForRun(runId)
        assert.deepEqual([run.status, run.errorCode], ['failed', 'a'])
        assert.deepEqual(calls, [
          'a',
          'b',
          'c',
          ...Array(time - 1)
            .fill(['a', 'c'])
            .flat(),
        ])
        const records = await live(engine, runId)
        const ordinals = records.map(({ ordinal }) => ordinal)
        assert.lengthOf(new Set(ordinals), 3, 'ordinals are unique')
        assert.isTrue(await engine.requeue(runId))
      }
      await engine.waitForRun(runId)
      broken.clear()
      await engine.requeue(runId)
      const run = await engine.waitForRun(runId)
      assert.deepEqual([run.status, run.output], ['completed', ['a', 'fulfilled']])
    })

    test('what was undone is done again, and undone again when that fails (DL-9)', async ({
      assert,
    }) => {
      const { engine } = await site.working({
        main: async (ctx) => {
          await does(ctx, 'before')
          for (const name of ['a', 'b'])
            await ctx.localStep(name, step(name), {
              compensate: (output) => void calls.push(`undo ${output}`),
            })
          await does(ctx, 'last')
        },
      })
      broken.add('last')
      const { runId } = await engine.start(MAIN)
      await engine.waitForRun(runId)
      const once = ['a', 'b', 'last', 'undo b', 'undo a']
      assert.deepEqual(calls, ['before', ...once])
      await engine.requeue(runId)
      const again = await engine.waitForRun(runId)
      assert.equal(again.status, 'failed')
      assert.deepEqual(calls, ['before', ...once, ...once])
      broken.clear()
      await engine.requeue(runId)
      const run = await engine.waitForRun(runId)
      assert.equal(run.status, 'completed')
      assert.deepEqual(calls, ['before', ...once, ...once, 'a', 'b', 'last'])
      const { records = [] } = (await engine.getHistory(runId)) ?? {}
      const compensations = records.filter((record) => record.kind === 'compensation')
      assert.deepEqual(
        compensations.map(({ generation, name }) => [generation, name]),
        [
          [1, 'b'],
          [1, 'a'],
          [2, 'b'],
          [2, 'a'],
        ]
      )
    })

    test('a failed child is requeued with its parent, a completed one is not run again', async ({
      assert,
    }) => {
      const { engine } = await site.working({
        main: async (ctx) => [await ctx.child('leaf', 'x'), await ctx.child('inner', 'y')],
        inner: (ctx, name: string) => ctx.child('leaf', name),
        leaf: async (ctx, name: string) => {
          await does(ctx, `prepare-${name}`)
          return does(ctx, name)
        },
      })
      broken.add('y')
      const { runId } = await engine.start(MAIN)
      const failed = await engine.waitForRun(runId)
      assert.deepEqual([failed.status, failed.errorCode], ['failed', 'y'])
      broken.clear()
      await engine.requeue(runId)
      const run = await engine.waitForRun(runId)
      assert.deepEqual([run.status, run.output], ['completed', ['x', 'y']])
      assert.deepEqual(calls, ['prepare-x', 'x', 'prepare-y', 'y', 'y'])
    })

    for (const [mode, concurrency] of [
      ['failFast', undefined],
      ['waitAll', 2],
    ] as const)
      test(`of the children of ctx.all (${mode}, ${concurrency ?? 'all'} at once) those that failed run again, and the others are adopted`, async ({
        assert,
      }) => {
        const names = ['p', 'q', 'r', 's', 't']
        const { engine } = await site.working({
          main: (ctx) =>
            ctx.all<unknown, string>({ name: 'leaf', version: '1' }, names, { mode, concurrency }),
          leaf: (ctx, name: string) => does(ctx, name),
        })
        broken = new Set(['q', 's'])
        const { runId } = await engine.start(MAIN)
        const failed = await engine.waitForRun(runId)
        assert.equal(failed.status, 'failed')
        await until(() => calls.length === names.length)
        for (const index of names.keys()) await engine.waitForRun(`${runId}.child.0.${index}`)
        broken.clear()
        await engine.requeue(runId)
        const run = await engine.waitForRun(runId)
        assert.deepEqual([run.status, run.output], ['completed', names])
        assert.deepEqual(calls.toSorted(), [...names, 'q', 's'].toSorted())
      })

    test('a child that failed after its parent had is requeued with it, and one that lives is adopted', async ({
      assert,
    }) => {
      const { engine } = await site.working({
        main: (ctx) =>
          Promise.all([
            ctx.child('after', 'x'),
            ctx.child('after', 'y'),
            ctx.localStep('fail', async () => {
              if (broken.has('fail')) await reaches(engine, `${runId}.child.1`, 'suspended')
              return step('fail')()
            }),
          ]),
        after: async (ctx, name: string) => {
          await ctx.waitForSignal(name)
          return does(ctx, name)
        },
      })
      broken = new Set(['fail', 'x'])
      const runId = 'parent'
      await engine.start(MAIN, null, runId)
      await engine.waitForRun(runId)
      await engine.signal('x')
      const child = await engine.waitForRun(`${runId}.child.0`)
      assert.equal(child.status, 'failed')
      broken.clear()
      await engine.requeue(runId)
      await until(() => calls.filter((name) => name === 'x').length === 2)
      await engine.signal('y')
      const run = await engine.waitForRun(runId)
      assert.deepEqual([run.status, run.output], ['completed', ['x', 'y', 'fail']])
      assert.sameMembers(calls, ['fail', 'x', 'fail', 'x', 'y'])
    })

    test('an earlier handoff is retired and its tag goes; the next failure has a handler of its own (OE-30, OE-31)', async ({
      assert,
    }) => {
      const { app, engine } = await site.app()
      engine.register('handler', '1', (ctx) => does(ctx, 'handle'))
      engine.register('main', '1', (ctx) => does(ctx, 'a'), {
        onError: [{ code: 'a', workflow: 'handler' }],
        tags: ['mine'],
      })
      broken = new Set(['a', 'handle'])
      await app.work()
      const { runId } = await engine.start(MAIN)
      const failed = await engine.waitForRun(runId)
      assert.deepEqual([failed.status, failed.errorCode], ['failed', 'handle'])
      assert.sameMembers(failed.tags, ['mine', 'onError:a'])
      await engine.requeue(runId)
      const again = await engine.waitForRun(runId)
      assert.deepEqual([again.status, again.handoffs], ['failed', 2])
      assert.deepEqual(calls, ['a', 'handle', 'a', 'handle'])
      assert.sameMembers(again.tags, ['mine', 'onError:a'])
      broken.clear()
      await engine.requeue(runId)
      const run = await engine.waitForRun(runId)
      assert.deepEqual([run.status, run.output, run.tags], ['completed', 'a', ['mine']])
      const { records = [] } = (await engine.getHistory(runId)) ?? {}
      const handoffs = records.filter((record) => record.kind === 'handoff')
      assert.deepEqual(
        handoffs.map(({ generation, name }) => [generation, name]),
        [
          [1, `onError:retried:${runId}.onError.0`],
          [2, `onError:retried:${runId}.onError.1`],
        ]
      )
      const handler = await engine.getRun(`${runId}.onError.0`)
      assert.equal(handler?.status, 'failed', 'a retired handler stays what it is')
    })

    test('a run that follows its handler, requeued by hand, does not run its body (OE-5)', async ({
      assert,
    }) => {
      const { app, engine } = await site.app()
      engine.register('handler', '1', (ctx) => ctx.waitForSignal('answer'))
      engine.register('main', '1', (ctx) => does(ctx, 'a'), { onError: [{ workflow: 'handler' }] })
      broken.add('a')
      await app.work()
      const { runId } = await engine.start(MAIN)
      await reaches(engine, `${runId}.onError.0`, 'suspended')
      const before = await rowOf(engine, runId)
      assert.isTrue(await engine.requeue(runId))
      await until(async () => {
        const run = await rowOf(engine, runId)
        return run.status === 'suspended' && run.token > before.token
      })
      await engine.signal('answer', 'handled')
      const run = await engine.waitForRun(runId)
      assert.deepEqual([run.status, run.output, calls], ['completed', 'handled', ['a']])
    })

    test('of a completed or a cancelled run does nothing and says so; of an unknown one is refused (P6)', async ({
      assert,
    }) => {
      const { engine } = await site.working({
        main: (ctx) => does(ctx, 'a'),
        waiting: (ctx) => ctx.waitForSignal('never'),
      })
      const done = await engine.start(MAIN)
      await done.result()
      const waiting = await engine.start('waiting')
      await engine.cancel(waiting.runId)
      for (const { runId } of [done, waiting]) {
        const before = await engine.getRun(runId)
        assert.isFalse(await engine.requeue(runId))
        assert.deepEqual(await engine.getRun(runId), before)
      }
      await assert.rejects(() => engine.requeue('nobody'), E_RUN_NOT_FOUND)
      assert.deepEqual(calls, ['a'])
    })

    test('of a live run keeps its count and its place: it is only made due (DL-9)', async ({
      assert,
    }) => {
      const { engine } = await site.working({
        main: async (ctx) => {
          await does(ctx, 'a')
          await ctx.sleep('1 hour')
        },
      })
      const { runId } = await engine.start(MAIN)
      await reaches(engine, runId, 'suspended')
      const before = await rowOf(engine, runId)
      assert.isTrue(await engine.requeue(runId))
      await until(async () => {
        const run = await rowOf(engine, runId)
        return run.status === 'suspended' && run.token > before.token
      })
      const after = await engine.getRun(runId)
      assert.deepEqual([after?.dueAt, after?.recoveryAttempts], [before.dueAt, 0])
      assert.deepEqual(calls, ['a'])
      await engine.advanceClock(3_600_000)
      await engine.waitForRun(runId)
    })

    test('of a parent whose child was cancelled ends as before: a cancelled run stays cancelled (P6)', async ({
      assert,
    }) => {
      const { engine } = await site.working({
        main: (ctx) => ctx.child('waiting'),
        waiting: (ctx) => ctx.waitForSignal('never'),
      })
      const { runId } = await engine.start(MAIN)
      await reaches(engine, `${runId}.child.0`, 'suspended')
      await engine.cancel(`${runId}.child.0`)
      await engine.waitForRun(runId)
      assert.isTrue(await engine.requeue(runId))
      const run = await engine.waitForRun(runId)
      assert.deepEqual([run.status, run.errorCode], ['failed', 'cancelled'])
    })

    test('what was undone is done anew under an id of its own, what was not keeps its own, and so do their compensations (DL-9)', async ({
      assert,
    }) => {
      const ids: string[] = []
      const noted = ({ id }: { id: string }) => void ids.push(id)
      let failures = 2
      const { engine } = await site.working({
        main: async (ctx) => {
          await ctx.localStep('charge', noted, { compensate: (_output, context) => noted(context) })
          await ctx.localStep('book', (context) => {
            noted(context)
            if (failures-- > 0) throw new FatalError('no seats')
          })
        },
      })
      await engine.start(MAIN, null, 'r')
      for (let time = 0; time < 2; time++) {
        await engine.waitForRun('r')
        assert.isTrue(await engine.requeue('r'))
      }
      const run = await engine.waitForRun('r')
      assert.equal(run.status, 'completed')
      assert.deepEqual(ids, [
        ...['r:0', 'r:1', 'r:-1'],
        ...['r:0~1', 'r:1', 'r:-1~1'],
        ...['r:0~2', 'r:1'],
      ])
    })

    test('gives a run its execution time anew, the same each time', async ({ assert }) => {
      const { app, engine } = await site.app()
      engine.register('main', '1', (ctx) => does(ctx, 'a'), { executionTimeout: '1 hour' })
      broken.add('a')
      await app.work()
      const { runId } = await engine.start(MAIN)
      for (let time = 0; time < 3; time++) {
        const failed = await engine.waitForRun(runId)
        assert.equal(failed.status, 'failed')
        const left = failed.deadlineAt! - failed.updatedAt
        assert.isAtMost(Math.abs(left - 3_600_000), 10_000, `after ${time} requeues`)
        await engine.advanceClock(7_200_000)
        assert.isTrue(await engine.requeue(runId))
      }
      await engine.waitForRun(runId)
    })

    test('by an application that has not looked for its workflows yet gives a run its execution time all the same', async ({
      assert,
    }) => {
      const options = { executionTimeout: '1 hour' }
      const { app, engine } = await site.app()
      engine.register('main', '1', (ctx) => does(ctx, 'a'), options)
      broken.add('a')
      await app.work()
      const { runId } = await engine.start(MAIN)
      const console = await site.app({}, {}, async () => {
        if (console.app.registry.workflow('main', '1')) return
        console.engine.register('main', '1', (ctx) => does(ctx, 'a'), options)
      })
      for (let time = 0; time < 2; time++) {
        broken.add('a')
        await engine.waitForRun(runId)
        await engine.advanceClock(36_000_000)
        assert.isTrue(await console.engine.requeue(runId))
      }
      const run = await engine.waitForRun(runId)
      const left = run.deadlineAt! - run.updatedAt
      assert.isAtMost(Math.abs(left - 3_600_000), 10_000)
    })

    test('with other input starts another run, with clean history and the tags and namespace of the first (DL-50, DL-51)', async ({
      assert,
    }) => {
      const { engine } = await site.working(
        {
          main: async (ctx, name: string) => does(ctx, name),
        },
        { namespaces: ['default', 'shop'] }
      )
      broken.add('a')
      const { runId } = await engine.start(MAIN, 'a', { namespace: 'shop', tags: ['order'] })
      const failed = await engine.waitForRun(runId)
      const retried = await engine.retryWithInput(runId, 'b')
      assert.match(retried?.runId ?? '', new RegExp(`^${runId}~retry~[0-9a-f]{8}$`))
      const run = await engine.waitForRun(retried?.runId ?? '')
      assert.deepEqual(
        [run.status, run.output, run.input, run.namespace, run.tags],
        ['completed', 'b', 'b', 'shop', ['order']]
      )
      assert.deepEqual(await engine.retryWithInput(runId, 'c', 'chosen'), { runId: 'chosen' })
      await engine.waitForRun('chosen')
      assert.isNull(await engine.retryWithInput('nobody', 'c'))
      assert.deepEqual(await engine.getRun(runId), failed)
    })
  })
)

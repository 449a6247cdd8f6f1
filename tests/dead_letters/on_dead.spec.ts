import { test } from '@japa/runner'
import { internalsOf } from '../../src/engine/engine.ts'
import type { DeadLetter } from '../../src/types/workflow.ts'
import type { WorkflowRun } from '../../src/engine/workflow_run.ts'
import { KINDS, onEach } from '../stores/databases.ts'
import { until } from '../support/until.ts'
import { Stage } from '../support/stage.ts'

onEach(KINDS, (kind) =>
  test.group(`Listening to dead runs (${kind})`, (group) => {
    let stage: Stage
    group.each.setup(async () => {
      stage = await Stage.on(kind)
      return () => stage.close()
    })

    /** An application whose run `r` has been lost once too often, and which has yet to pick it up. */
    async function applicationAtTheCap(deadLetterWorkflow?: string) {
      const app = await stage.app()
      const ref = app.engine.register('poison', '1', async () => {}, { deadLetterWorkflow })
      await app.engine.start(ref, { lines: 3 }, 'r')
      await stage.loseBeyondCap('poison')
      return app
    }

    test('DL-40: a listener gets the dead run with its error, until it unsubscribes', async ({
      assert,
    }) => {
      const app = await applicationAtTheCap()
      const { engine } = app
      const heard: WorkflowRun[] = []
      const unheard: unknown[] = []
      engine.onDead((run) => heard.push(run))
      engine.onDead((run) => unheard.push(run))()
      await app.work()
      const dead = await engine.waitForRun('r')
      assert.deepEqual(heard, [dead])
      assert.equal(heard[0]?.status, 'dead')
      assert.equal(heard[0]?.error?.code, 'max_recovery_attempts')
      assert.deepEqual(heard[0]?.input, { lines: 3 })
      assert.deepEqual(unheard, [])
    })

    test('DL-41, DL-43: first the run.failed event, then listeners, on the process that dead-lettered the run alone, and only then the handler starts', async ({
      assert,
    }) => {
      const app = await applicationAtTheCap('handler')
      const other = await stage.app()
      const order: string[] = []
      app.engine.register('handler', '1', (ctx) =>
        ctx.localStep('handle', () => void order.push('handler'))
      )
      app.engine.on('run.failed', ({ runId, status, error }) =>
        order.push(`${runId} ${status} ${error.code}`)
      )
      app.engine.onDead(async ({ id }) => {
        const handler = await app.engine.getRun(`dlq:${id}`)
        order.push(`listener, handler run ${handler?.workflow}`)
      })
      app.engine.onDead(() => order.push('listener'))
      other.engine.onDead(() => order.push('another process'))
      await other.work()
      await app.work()
      await stage.handled(app.engine)
      assert.deepEqual(order.slice(0, 2), ['r dead max_recovery_attempts', 'listener'])
      assert.sameMembers(order.slice(2), ['listener, handler run handler', 'handler'])
    })

    test('a signal that a dead run has not read goes to the next wait (P1)', async ({ assert }) => {
      const app = await stage.app()
      const poison = app.engine.register('poison', '1', (ctx) => ctx.waitForSignal('go'))
      const next = app.engine.register('next', '1', (ctx) => ctx.waitForSignal('go'))
      const first = await app.work()
      await app.engine.start(poison, null, 'r')
      await until(async () => {
        const run = await app.engine.getRun('r')
        return run?.status === 'suspended'
      })
      await first.stop()
      const { delivered } = await app.engine.signal('go', 'unread')
      assert.isTrue(delivered)
      await stage.loseBeyondCap('poison')
      await app.work()
      const dead = await app.engine.waitForRun('r')
      assert.equal(dead.status, 'dead')
      await app.engine.start(next, null, 'n')
      const { output } = await app.engine.waitForRun('n')
      assert.equal(output, 'unread')
    })

    test('DL-42: listeners are not awaited, and what they throw or reject with is logged at debug and breaks nothing', async ({
      assert,
    }) => {
      const app = await applicationAtTheCap('handler')
      const handled: DeadLetter[] = []
      app.engine.register('handler', '1', (ctx, letter: DeadLetter) =>
        ctx.localStep('handle', () => void handled.push(letter))
      )
      let isCalled = false
      app.engine.onDead(() => new Promise(() => {}))
      app.engine.onDead(() => {
        throw new Error('thrown by a listener')
      })
      app.engine.onDead(() => Promise.reject(new Error('rejected by a listener')))
      // As a query does, which begins when it is awaited.
      const failing: PromiseLike<never> = {
        then: (_, reject) => Promise.reject(new Error('rejected by a query')).then(null, reject),
      }
      app.engine.onDead(() => failing)
      app.engine.onDead(() => {
        isCalled = true
      })
      await app.work()
      await stage.handled(app.engine)
      assert.isTrue(isCalled)
      assert.lengthOf(handled, 1)
      const logged = app.log.lines.filter(({ args }) => /onDead/.test(String(args[1])))
      assert.deepEqual(
        logged.map(({ level, args }) => [level, String(Reflect.get(Object(args[0]), 'err'))]),
        [
          ['debug', 'Error: thrown by a listener'],
          ['debug', 'Error: rejected by a listener'],
          ['debug', 'Error: rejected by a query'],
        ]
      )
    })

    test('DL-42: a run that cannot be read for its listeners is dead all the same, and its handler starts at once', async ({
      assert,
    }) => {
      const app = await applicationAtTheCap('handler')
      const { engine } = app
      engine.register('handler', '1', async () => 'handled')
      const heard: unknown[] = []
      engine.onDead((run) => heard.push(run))
      const store = await internalsOf(engine).store()
      const getRun = store.getRun.bind(store)
      store.getRun = async (runId) => {
        if (runId === 'r') throw new Error('the connection is gone')
        return getRun(runId)
      }
      await app.work()
      await until(async () => {
        const handler = await engine.getRun('dlq:r')
        return handler?.output === 'handled'
      })
      assert.deepEqual(heard, [])
      const errors = app.log.lines.filter(({ level }) => level === 'error')
      assert.isTrue(
        errors.some(({ args }) => /"r" is dead, and could not be read/.test(String(args[1])))
      )
    })

    test('DL-41: a handler run that cannot be woken starts by itself a little later', async ({
      assert,
    }) => {
      const app = await applicationAtTheCap('handler')
      app.engine.register('handler', '1', async () => 'handled')
      const { commits } = internalsOf(app.engine)
      const write = commits.write.bind(commits)
      const tried = Promise.withResolvers<void>()
      commits.write = (wanted) => {
        if (wanted.type !== 'wake') return write(wanted)
        tried.resolve()
        return Promise.reject(new Error('The database is away'))
      }
      await app.work()
      await tried.promise
      await stage.store.advanceClock(10_000)
      const handler = await stage.handled(app.engine)
      assert.equal(handler.output, 'handled')
      assert.deepEqual(
        app.log.lines.filter(
          ({ level, args }) => level === 'error' && Object(args[0]).runId === 'r'
        ),
        []
      )
    })

    test('DL-44: a listener may start the handler by hand', async ({ assert }) => {
      const app = await applicationAtTheCap()
      const { engine } = app
      engine.register('by-hand', '1', (ctx, letter: DeadLetter) =>
        ctx.localStep('handle', () => letter.deadRunId)
      )
      engine.onDead((run) => {
        const { id, workflow, input, error } = run
        const letter: DeadLetter = { deadRunId: id, workflow, input, error }
        void engine.start('by-hand', letter, `dlq:${id}`)
      })
      const worker = await app.work()
      await engine.waitForRun('r')
      await worker.whenIdle()
      const handled = await stage.handled(engine)
      assert.equal(handled.output, 'r')
      assert.deepEqual(await engine.findStranded(), [])
    })

    test('DL-44: beside a declared handler it is the run that exists, with a warning', async ({
      assert,
    }) => {
      const app = await applicationAtTheCap('handler')
      const { engine } = app
      const handled: string[] = []
      for (const name of ['handler', 'by-hand'])
        engine.register(name, '1', (ctx) => ctx.localStep('handle', () => handled.push(name)))
      const started = Promise.withResolvers<string>()
      engine.onDead(async ({ id }) => {
        const handle = await engine.start('by-hand', null, `dlq:${id}`)
        started.resolve(handle.runId)
      })
      await app.work()
      assert.equal(await started.promise, 'dlq:r')
      await stage.handled(engine)
      assert.deepEqual(handled, ['handler'])
      assert.isTrue(
        app.log.lines.some(
          ({ level, args }) => level === 'warn' && /"dlq:r" exists/.test(String(args))
        )
      )
    })
  })
)

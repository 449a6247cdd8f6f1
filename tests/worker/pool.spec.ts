import { setImmediate as nextRound } from 'node:timers/promises'
import { test } from '@japa/runner'
import { internalsOf } from '../../src/engine/engine.ts'
import { currentScope } from '../../src/engine/scope.ts'
import type { AbortError } from '../../src/errors.ts'
import { MemoryDatabase } from '../../src/stores/memory/memory_database.ts'
import { MemoryStore } from '../../src/stores/memory/memory_store.ts'
import { Connection } from '../support/connection.ts'
import { DurableApp } from '../support/durable_app.ts'
import { Gate } from '../support/gate.ts'
import { until } from '../support/until.ts'

test.group('The slots of a worker', (group) => {
  let app: DurableApp
  group.each.setup(() => {
    app = new DurableApp()
    return () => app.close()
  })

  /** The next write of a turn that records something comes to nothing, by a fault of our own. */
  function failNextRecord(): void {
    const { commits } = internalsOf(app.engine)
    const write = commits.write.bind(commits)
    commits.write = (wanted) => {
      if (wanted.type !== 'turn' || wanted.records.length === 0) return write(wanted)
      commits.write = write
      return Promise.reject(new TypeError('broken'))
    }
  }

  test('a run that cannot be executed aborts its steps, and is offered again when they have returned', async ({
    assert,
    cleanup,
  }) => {
    const [begun, leaving] = [new Gate(), new Gate()]
    cleanup(() => leaving.open())
    const aborted = Promise.withResolvers<AbortError>()
    app.engine.register('main', '1', (ctx) =>
      Promise.all([
        ctx.localStep('slow', async ({ signal }) => {
          await begun.pass(signal).catch(aborted.resolve)
          await leaving.pass()
        }),
        ctx.localStep('fast', () => begun.reached()),
      ])
    )
    const worker = await app.work()
    failNextRecord()
    const { runId } = await app.engine.start({ name: 'main', version: '1' })
    const reason = await aborted.promise
    assert.equal(reason.code, 'turn_over')
    await leaving.reached()
    await nextRound()
    await internalsOf(app.engine).commits.idle()
    const { isIdle } = await worker.standing()
    assert.isFalse(isIdle, 'its slot is taken')
    const during = await app.engine.getRun(runId)
    assert.equal(during?.status, 'running')
    leaving.open()
    await until(async () => {
      const run = await app.engine.getRun(runId)
      return run?.status === 'blocked'
    })
  })

  test('a run that is cancelled while its history is loaded is not executed', async ({
    assert,
    cleanup,
  }) => {
    const connection = new Connection(new MemoryStore(new MemoryDatabase()))
    const slow = new DurableApp({ store: connection.store })
    cleanup(async () => {
      connection.thaw()
      await slow.close()
    })
    const calls: string[] = []
    slow.engine.register('main', '1', (ctx) => ctx.localStep('a', () => void calls.push('a')))
    connection.freeze(['load'])
    await slow.engine.start({ name: 'main', version: '1' }, null, 'r')
    const loading = connection.called('load')
    const worker = await slow.work()
    await loading
    assert.isTrue(await slow.engine.cancel('r'))
    await nextRound()
    connection.thaw()
    await worker.whenIdle()
    assert.deepEqual(calls, [])
  })

  test('late news of a cancel leaves alone what is executed under the lease that followed it', async ({
    assert,
    cleanup,
  }) => {
    const [step, undoing] = [new Gate(), new Gate()]
    cleanup(() => undoing.open())
    const signals: AbortSignal[] = []
    app.engine.register('main', '1', (ctx) =>
      ctx.localStep('charge', ({ signal }) => step.pass(signal), {
        compensate: (_, { signal }) => {
          signals.push(signal)
          return undoing.pass(signal)
        },
      })
    )
    const { news } = internalsOf(app.engine)
    const revoked = new Map<string, number>()
    news.onRevoked((runId, token) => void revoked.set(runId, token))
    const worker = await app.work()
    const { runId } = await app.engine.start({ name: 'main', version: '1' })
    await step.reached()
    await app.engine.cancel(runId, { compensate: true })
    await undoing.reached()
    assert.deepEqual([...revoked.keys()], [runId])
    const none = new Set<string>()
    news.publish({ due: none, dueIn: null, inbox: none, ended: none, revoked }, new Map())
    undoing.open()
    await worker.whenIdle()
    assert.deepEqual(
      signals.map(({ aborted }) => aborted),
      [false]
    )
    const run = await app.engine.getRun(runId)
    assert.equal(run?.status, 'cancelled')
  })

  test('a step that goes on though its run was cancelled keeps the slot, and the worker says so', async ({
    assert,
    cleanup,
  }) => {
    const deaf = new Gate()
    const quick = new DurableApp({ options: { stallMs: 1 } })
    cleanup(async () => {
      deaf.open()
      await quick.close()
    })
    quick.engine.register('main', '1', (ctx) => ctx.localStep('deaf', () => deaf.pass()))
    const worker = await quick.work()
    const { runId } = await quick.engine.start({ name: 'main', version: '1' })
    await deaf.reached()
    await quick.engine.cancel(runId)
    const warned = () =>
      quick.log.lines.some(
        ({ level, args }) => level === 'warn' && /keeps a slot/.test(String(args[1]))
      )
    await until(warned)
    const during = await worker.standing()
    assert.isFalse(during.isIdle)
    deaf.open()
    await until(async () => {
      const { isIdle } = await worker.standing()
      return isIdle
    })
  })

  test('a function that goes on after its attempt keeps one slot until it returns, however often its run suspends meanwhile', async ({
    assert,
    cleanup,
  }) => {
    const [deaf, long, other] = [new Gate(), new Gate(), new Gate()]
    cleanup(() => [deaf, long, other].forEach((gate) => gate.open()))
    const deafly = async () => {
      currentScope()?.fail(new Error('left to reject'))
      await deaf.pass()
    }
    app.engine.register('main', '1', async (ctx) => {
      await ctx.localStep('deaf', deafly, { retries: 0 }).catch(() => {})
      await ctx.waitForSignal('first')
      await ctx.waitForSignal('second')
      await ctx.localStep('long', () => long.pass())
    })
    app.engine.register('other', '1', (ctx) => ctx.localStep('other', () => other.pass()))
    await app.work({ concurrency: 3 })
    await app.engine.start({ name: 'main', version: '1' }, null, 'r')
    for (const [signal, recorded] of [
      ['first', 1],
      ['second', 2],
    ] as const) {
      await until(async () => {
        const run = await app.engine.getRun('r')
        const history = await app.engine.getHistory('r')
        return run?.status === 'suspended' && history?.records.length === recorded
      })
      await app.engine.signal(signal)
    }
    await long.reached()
    await app.engine.start({ name: 'other', version: '1' }, null)
    await other.reached()
    await app.engine.start({ name: 'other', version: '1' }, null)
    await nextRound()
    assert.equal(other.arrived, 1)
    deaf.open()
    await other.reached(2)
  })
})

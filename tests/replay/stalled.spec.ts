import { test } from '@japa/runner'
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { setImmediate as nextRound } from 'node:timers/promises'
import { FatalError } from '../../src/errors.ts'
import type { WorkflowCtx } from '../../src/types/context.ts'
import { DurableApp } from '../support/durable_app.ts'
import { Gate } from '../support/gate.ts'
import { Deployments } from './deployments.ts'

test.group('Bodies that stall', (group) => {
  let deployments: Deployments
  group.each.setup(() => {
    deployments = new Deployments()
    return () => deployments.close()
  })

  test('a body that awaits nothing of ctx emits run.stalled after stallMs', async ({ assert }) => {
    const stalled = Promise.withResolvers<string>()
    const { engine } = await deployments.deploy(
      { main: () => new Promise(() => {}) },
      { stallMs: 5 }
    )
    engine.on('run.stalled', ({ runId }) => stalled.resolve(runId))
    await engine.start('main', undefined, 'run')
    assert.equal(await stalled.promise, 'run')
  })

  test('a run whose body has stalled counts as stranded until it has ended (P4)', async ({
    assert,
  }) => {
    const stalled = Promise.withResolvers<void>()
    const { engine } = await deployments.deploy(
      { main: () => new Promise(() => {}) },
      { stallMs: 5 }
    )
    engine.on('run.stalled', () => stalled.resolve())
    await engine.start('main', undefined, 'run')
    await stalled.promise
    assert.deepEqual(await engine.findStranded(), [{ runId: 'run', reason: 'stalled' }])
    await engine.cancel('run')
    await engine.waitForRun('run')
    let left = await engine.findStranded()
    while (left.length > 0) {
      await nextRound()
      left = await engine.findStranded()
    }
  })

  test('a body that waits for a long step or for the outside does not', async ({ assert }) => {
    const gate = new Gate()
    const stalled: string[] = []
    const watched = Promise.withResolvers<void>()
    const { engine } = await deployments.deploy(
      {
        main: (ctx) => ctx.localStep('long', () => gate.pass()),
        waiting: (ctx) => ctx.waitForSignal('go'),
        stalling: () => new Promise(() => {}),
      },
      { stallMs: 5 }
    )
    engine.on('run.stalled', ({ runId }) => {
      stalled.push(runId)
      watched.resolve()
    })
    await engine.start('main', undefined, 'run')
    await engine.start('waiting', undefined, 'waiting')
    await gate.reached()
    // What stalls later is reported: by then the others would have been.
    await engine.start('stalling', undefined, 'stalling')
    await watched.promise
    gate.open()
    assert.deepEqual(stalled, ['stalling'])
  })

  /** A schema that is done at once so many times, and then never. */
  const hangingAfter = (times: number): StandardSchemaV1 => ({
    '~standard': {
      version: 1,
      vendor: 'test',
      validate: (value) => (times-- > 0 ? { value } : new Promise(() => {})),
    },
  })

  test('a run whose input schema is never done emits run.stalled, and frees its slot when it is cancelled', async ({
    assert,
  }) => {
    const stalled = Promise.withResolvers<string>()
    const app = new DurableApp({ options: { stallMs: 5 } })
    const main = app.engine.register('main', '1', () => 1, { input: hangingAfter(0) })
    const other = app.engine.register('other', '1', () => 2)
    app.engine.on('run.stalled', ({ runId }) => stalled.resolve(runId))
    await app.work({ concurrency: 1 })
    await app.engine.start(main, 1, 'run')
    assert.equal(await stalled.promise, 'run')
    assert.deepEqual(await app.engine.findStranded(), [{ runId: 'run', reason: 'stalled' }])
    await app.engine.cancel('run')
    const handle = await app.engine.start(other, undefined)
    assert.equal(await handle.result(), 2)
    assert.deepEqual(await app.engine.findStranded(), [])
    await app.close()
  })

  /** The run that a worker hands back which stops once the run has stalled. */
  async function handedBack(body: (ctx: WorkflowCtx) => Promise<unknown>, done: number) {
    const stalled = Promise.withResolvers<void>()
    const app = new DurableApp({ options: { stallMs: 5 } })
    const main = app.engine.register('main', '1', body, { input: hangingAfter(done) })
    app.engine.on('run.stalled', () => stalled.resolve())
    const worker = await app.work()
    await app.engine.start(main, 1, 'run')
    await stalled.promise
    await worker.stop()
    const run = await app.engine.getRun('run')
    await app.close()
    return [run?.status, run?.phase, run?.recoveryAttempts]
  }

  test('a worker that stops hands back at once, uncounted, a run whose input schema is never done', async ({
    assert,
  }) => {
    assert.deepEqual(await handedBack(async () => 1, 0), ['suspended', 'body', 0])
  })

  test('the same holds for a run that is to be undone', async ({ assert }) => {
    const fail = async (ctx: WorkflowCtx) => {
      await ctx.localStep('done', () => 1, { compensate: () => {} })
      throw new FatalError('No', 'no')
    }
    assert.deepEqual(await handedBack(fail, 1), ['suspended', 'unwinding', 0])
  })
})

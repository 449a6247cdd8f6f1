import { test } from '@japa/runner'
import { setImmediate as nextRound } from 'node:timers/promises'
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
})

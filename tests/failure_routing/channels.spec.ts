import { test } from '@japa/runner'
import { channel } from 'node:diagnostics_channel'
import { publish } from '../../src/channels.ts'
import { RUN_EVENT_NAMES } from '../../src/engine/events.ts'
import { FatalError } from '../../src/errors.ts'
import { DurableApp } from '../support/durable_app.ts'

test.group('Diagnostics channels', (group) => {
  const received: [string, Record<string, unknown>][] = []
  group.each.setup(() => {
    received.length = 0
    const subscriptions = RUN_EVENT_NAMES.map((name) => {
      const found = channel(`agora:durable:${name}`)
      const listener = (event: unknown) => {
        received.push([name, event as Record<string, unknown>])
      }
      found.subscribe(listener)
      return () => found.unsubscribe(listener)
    })
    return () => subscriptions.forEach((unsubscribe) => unsubscribe())
  })

  test('OE-51: run.routed and run.unrouted reach their channels, with what the listeners of the engine get', async ({
    assert,
    cleanup,
  }) => {
    const app = new DurableApp()
    cleanup(() => app.close())
    const { engine } = app
    const told: unknown[] = []
    engine.on('run.routed', (event) => told.push(event))
    engine.on('run.unrouted', (event) => told.push(event))
    for (const [name, workflow] of [
      ['a', 'b'],
      ['b', 'a'],
    ] as const)
      engine.register(
        name,
        '1',
        async () => {
          throw new FatalError(`${name} failed`, name)
        },
        { onError: [{ workflow }] }
      )
    await app.work()
    await engine.start({ name: 'a' }, null, 'r')
    await engine.waitForRun('r')
    const routes = received.filter(([name]) => name.endsWith('routed'))
    assert.deepEqual(
      routes.map(([name, { runId }]) => [name, runId]),
      [
        ['run.routed', 'r'],
        ['run.unrouted', 'r.onError.0'],
      ]
    )
    assert.deepEqual(
      routes.map(([, event]) => event),
      told
    )
    const [routed, unrouted] = routes.map(([, event]) => event)
    assert.deepInclude(routed, { workflow: 'a', version: '1', handlerRunId: 'r.onError.0' })
    assert.equal((routed?.error as { code: string }).code, 'a')
    assert.match(String(unrouted?.reason), /leads back/)
  })

  test('every event of runs has its channel', async ({ assert, cleanup }) => {
    const app = new DurableApp()
    cleanup(() => app.close())
    const { engine } = app
    engine.register('sleeping', '1', (ctx) => ctx.sleep('1 day'))
    engine.register('returning', '1', async () => 1)
    await app.work()
    await engine.start({ name: 'sleeping' }, null, 'sleeping')
    await engine.start({ name: 'returning' }, null, 'returning')
    await engine.waitForRun('returning')
    await engine.cancel('sleeping')
    assert.sameDeepMembers(
      received.map(([name, { runId }]) => [name, runId]),
      [
        ['run.started', 'sleeping'],
        ['run.started', 'returning'],
        ['run.completed', 'returning'],
        ['run.cancelled', 'sleeping'],
      ]
    )
  })

  test('a run that is cancelled at once is told of by the process that cancelled it, with the children it awaited', async ({
    assert,
    cleanup,
  }) => {
    const app = new DurableApp()
    cleanup(() => app.close())
    const { engine } = app
    engine.register('parent', '1', (ctx) => ctx.all('child', [1, 2]))
    engine.register('child', '1', (ctx) => ctx.sleep('1 day'))
    const started = Promise.withResolvers<void>()
    let count = 0
    engine.on('run.started', () => ++count === 3 && started.resolve())
    await app.work()
    await engine.start({ name: 'parent' }, null, 'p')
    await started.promise
    assert.isTrue(await engine.cancel('p'))
    assert.isFalse(await engine.cancel('p'))
    const cancelled = received.filter(([name]) => name === 'run.cancelled')
    assert.sameMembers(
      cancelled.map(([, { runId }]) => runId),
      ['p', 'p.child.0.0', 'p.child.0.1']
    )
    const parent = { runId: 'p', workflow: 'parent', version: '1', namespace: 'default' }
    assert.deepInclude(
      cancelled.map(([, event]) => event),
      parent
    )
  })

  test('without subscribers nothing is published', ({ assert }) => {
    const name = 'agora:durable:run.test'
    const quiet = channel(name)
    let published = 0
    quiet.publish = () => void published++
    publish('run.test', {})
    assert.equal(published, 0)
    const listener = () => {}
    quiet.subscribe(listener)
    const heard = channel(name)
    heard.publish = () => void published++
    publish('run.test', {})
    quiet.unsubscribe(listener)
    assert.equal(published, 1)
  })
})

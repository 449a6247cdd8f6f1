import { test } from '@japa/runner'
import { FatalError } from '../../src/errors.ts'
import { Stage } from '../support/stage.ts'
import { KINDS, onEach } from '../stores/databases.ts'

const fail = (code: string) => async () => {
  throw new FatalError(`${code} failed`, code)
}

onEach(KINDS, (kind) =>
  test.group(`Failure routes | chains of handlers (${kind})`, (group) => {
    let stage: Stage
    group.each.setup(async () => {
      stage = await Stage.on(kind)
      return () => stage.close()
    })

    test('OE-12: a failure of a handler is routed by its own routes, and settles every run before it', async ({
      assert,
    }) => {
      const app = await stage.app()
      const { engine } = app
      engine.register('a', '1', fail('a'), { onError: [{ workflow: 'b' }] })
      engine.register('b', '1', fail('b'), { onError: [{ workflow: 'c' }] })
      engine.register(
        'c',
        '1',
        async (_, failure: { error: { code: string } }) => failure.error.code
      )
      await app.work()
      const handle = await engine.start({ name: 'a' }, null, 'r')
      assert.equal(await handle.result(), 'b')
      const handler = await engine.getRun('r.onError.0.onError.0')
      assert.deepEqual([handler?.workflow, handler?.routeChain], ['c', ['a', 'b']])
    })

    for (const [title, routes] of [
      ['of two workflows', { a: 'b', b: 'a' }],
      ['of three workflows', { a: 'b', b: 'c', c: 'a' }],
      ['back into the middle', { a: 'b', b: 'c', c: 'b' }],
      ['to itself', { a: 'a' }],
    ] as const)
      test(`OE-12: a loop ${title} ends with the failure of the last one, and says why`, async ({
        assert,
      }) => {
        const app = await stage.app()
        const { engine } = app
        const told: [string, string][] = []
        engine.on('run.unrouted', ({ runId, reason }) => told.push([runId, reason]))
        for (const [name, workflow] of Object.entries(routes))
          engine.register(name, '1', fail(name), { onError: [{ workflow }] })
        await app.work()
        await engine.start({ name: 'a' }, null, 'r')
        const run = await engine.waitForRun('r')
        const last = Object.keys(routes).at(-1)
        assert.deepEqual([run.status, run.errorCode], ['failed', last])
        assert.lengthOf(told, 1)
        const depth = Object.keys(routes).length - 1
        assert.equal(told[0]?.[0], `r${'.onError.0'.repeat(depth)}`)
        const way = [...Object.keys(routes), Object.values(routes).at(-1)].join(' -> ')
        assert.equal(told[0]?.[1], `the route leads back to where the failure came from: ${way}`)
      })

    test('OE-12: a worker logs why a failure was not routed', async ({ assert }) => {
      const app = await stage.app()
      const { engine } = app
      engine.register('a', '1', fail('a'), {
        onError: [{ workflow: () => Promise.reject(new Error('the file is gone')) }],
      })
      const { promise, resolve } = Promise.withResolvers<{ reason: string }>()
      engine.on('run.unrouted', resolve)
      // Without a worker's own look at the routes, which would refuse this one.
      const worker = app.work()
      await assert.rejects(
        () => worker,
        'Invalid workflow "a": the handler for "*" in "onError" cannot be loaded: the file is gone'
      )
      const other = await stage.app()
      await other.work()
      let isGone = false
      other.engine.register('a', '1', fail('a'), {
        onError: [
          {
            workflow: () => (isGone ? Promise.reject(new Error('the file is gone')) : 'b'),
          },
        ],
      })
      isGone = true
      other.engine.on('run.unrouted', resolve)
      await other.engine.start({ name: 'a' }, null, 'r')
      const run = await other.engine.waitForRun('r')
      assert.deepEqual([run.status, run.errorCode], ['failed', 'a'])
      const { reason } = await promise
      assert.match(reason, /routes of "a" cannot be followed: .*the file is gone/)
    })
  })
)

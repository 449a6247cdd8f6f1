import { test } from '@japa/runner'
import { FatalError } from '../../src/errors.ts'
import { RouteCheck } from '../../src/maintenance/route_check.ts'
import { Stage } from '../support/stage.ts'
import { KINDS, onEach } from '../stores/databases.ts'
import type { LogCapture } from '../support/log_capture.ts'
import { until } from '../support/until.ts'

const fail = async () => {
  throw new FatalError('no', 'no')
}

function warningsOf({ lines }: LogCapture): string[] {
  const warnings = lines.filter(({ level }) => level === 'warn')
  const texts = warnings.map(({ args }) => String(args[0]))
  return texts.filter((line) => /routed to|handed to/.test(line))
}

onEach(KINDS, (kind) =>
  test.group(`Failure routes | misnamed handlers (${kind})`, (group) => {
    let stage: Stage
    group.each.setup(async () => {
      stage = await Stage.on(kind)
      return () => stage.close()
    })

    test('OE-41: unservedOnErrorRoutes tells of routes whose handler is neither registered nor served by a live worker', async ({
      assert,
    }) => {
      const { engine } = await stage.app()
      engine.register('main', '1', fail, {
        onError: [
          { code: 'a', workflow: 'registered' },
          { code: 'b', workflow: 'served' },
          { code: 'c', workflow: 'other-version' },
          { workflow: 'mistyped' },
        ],
      })
      engine.register('registered', '1', async () => {})
      const other = await stage.app()
      other.engine.register('served', '1', async () => {})
      other.engine.register('other-version', '2', async () => {})
      const worker = await other.work()
      const unserved = [
        { workflow: 'main', code: 'c', handler: 'other-version' },
        { workflow: 'main', code: '*', handler: 'mistyped' },
      ]
      assert.deepEqual(await engine.unservedOnErrorRoutes(), unserved)
      await worker.stop()
      assert.deepEqual(await engine.unservedOnErrorRoutes(), [
        { workflow: 'main', code: 'b', handler: 'served' },
        ...unserved,
      ])
    })

    test('OE-41: a worker that fell silent, or serves another namespace, serves no handler of this one', async ({
      assert,
    }) => {
      const { engine } = await stage.app({ namespaces: ['mill'] })
      engine.register('main', '1', fail, { onError: [{ workflow: 'served' }] })
      const unserved = [{ workflow: 'main', code: '*', handler: 'served' }]
      const elsewhere = await stage.app()
      elsewhere.engine.register('served', '1', async () => {})
      await elsewhere.work()
      assert.deepEqual(await engine.unservedOnErrorRoutes(), unserved)
      const here = await stage.app({ namespaces: ['mill'], leaseMs: 60_000 })
      here.engine.register('served', '1', async () => {})
      await here.work()
      assert.deepEqual(await engine.unservedOnErrorRoutes(), [])
      await engine.advanceClock(60_001)
      assert.deepEqual(await engine.unservedOnErrorRoutes(), unserved)
    })

    test('OE-40: a worker reports a route that is still unserved when it looks again', async ({
      assert,
    }) => {
      const app = await stage.app()
      app.engine.register('main', '1', fail, { onError: [{ code: 'no', workflow: 'mistyped' }] })
      await app.work({ routeRecheckMs: 1 })
      await until(() => warningsOf(app.log).length > 0)
      assert.deepEqual(warningsOf(app.log), [
        'Failures of "main" with code "no" are routed to "mistyped", which is neither registered here nor served by a ' +
          'live worker: their runs would wait for it. Register the workflow, start a worker that has it, or correct ' +
          'the name in "onError"',
      ])
    })

    test('DL-29: a worker reports handlers of dead runs that are still unserved when it looks again', async ({
      assert,
    }) => {
      const other = await stage.app()
      other.engine.register('served', '1', async () => {})
      await other.work()
      const app = await stage.app({ deadLetterWorkflow: 'mistyped' })
      app.engine.register('main', '1', fail, { deadLetterWorkflow: 'misspelt' })
      app.engine.register('well', '1', fail, { deadLetterWorkflow: 'served' })
      await app.work({ routeRecheckMs: 1 })
      await until(() => warningsOf(app.log).length > 1)
      assert.deepEqual(warningsOf(app.log), [
        'Dead runs are handed to "mistyped", which is neither registered here nor served by a live worker: its runs ' +
          'would wait for one. Register the workflow, start a worker that has it, or correct the name in ' +
          '"deadLetterWorkflow"',
        'Dead runs of "main" are handed to "misspelt", which is neither registered here nor served by a live worker: ' +
          'its runs would wait for one. Register the workflow, start a worker that has it, or correct the name in ' +
          '"deadLetterWorkflow"',
      ])
    })

    test('a failure that is routed to nobody waits for a worker that has the handler', async ({
      assert,
    }) => {
      const app = await stage.app()
      app.engine.register('main', '1', fail, { onError: [{ workflow: 'late' }] })
      await app.work()
      const event = new Promise((resolve) => app.engine.on('run.routed', resolve))
      await app.engine.start({ name: 'main' }, null, 'r')
      await event
      const handler = await app.engine.getRun('r.onError.0')
      assert.equal(handler?.status, 'pending')
      const other = await stage.app()
      other.engine.register('late', '1', async () => 'handled')
      await other.work()
      const run = await app.engine.waitForRun('r')
      assert.equal(run.output, 'handled')
    })
  })
)

test.group('Failure routes | second look', () => {
  const route = (handler: string) => ({ workflow: 'main', code: '*', handler })

  test('OE-40: what is unserved at the start is looked at again after 30 s, and reported only then', async ({
    assert,
  }) => {
    const warned: string[] = []
    const found = [
      [route('late'), route('mistyped')],
      [route('mistyped'), route('new')],
    ]
    const check = new RouteCheck({
      routes: async () => found.shift() ?? [],
      deadLetters: async () => [],
      warn: (message) => warned.push(message),
    })
    assert.equal(await check.runOnce(), 30_000)
    assert.isEmpty(warned)
    assert.equal(await check.runOnce(), Infinity)
    assert.lengthOf(warned, 1)
    assert.include(warned[0], '"mistyped"')
    assert.isEmpty(found)
  })

  test('OE-40: where every route is served there is no second look', async ({ assert }) => {
    const check = new RouteCheck({
      routes: async () => [],
      deadLetters: async () => [],
      warn: (message) => assert.fail(message),
    })
    assert.equal(await check.runOnce(), Infinity)
  })
})

import { test } from '@japa/runner'
import { EmbeddedWorker } from '../../src/worker/embedded_worker.ts'
import { DurableApp } from '../support/durable_app.ts'
import { Gate } from '../support/gate.ts'

test.group('Embedded worker', (group) => {
  let app: DurableApp
  group.each.setup(() => {
    app = new DurableApp()
    app.engine.register('main', '1', async () => 'done')
    return () => app.close()
  })

  test('one that cannot start is tried again, and executes runs when it can (P4)', async ({
    assert,
    cleanup,
  }) => {
    const errors: unknown[] = []
    const problems = [new Error('away'), new Error('still away')]
    const embedded = new EmbeddedWorker({
      start: async () => {
        const problem = problems.shift()
        if (problem) throw problem
        return app.work()
      },
      onError: (error) => errors.push(error),
      retryMs: 1,
    })
    cleanup(() => embedded.stop())
    const told = [...problems]
    await embedded.start()
    assert.deepEqual(errors, told.slice(0, 1))
    const { runId } = await app.engine.start({ name: 'main', version: '1' })
    const run = await app.engine.waitForRun(runId)
    assert.equal(run.output, 'done')
    assert.deepEqual(errors, told)
  })

  test('one whose server ends while it starts is stopped when it has', async ({
    assert,
    cleanup,
  }) => {
    const gate = new Gate()
    const embedded = new EmbeddedWorker({
      start: async () => {
        await gate.pass()
        return app.work()
      },
      onError: () => assert.fail('it can start'),
    })
    cleanup(() => gate.open())
    void embedded.start()
    await gate.reached()
    const stopping = embedded.stop()
    gate.open()
    await stopping
    assert.deepEqual(await app.engine.listWorkers(), [])
  })

  test('one whose server ended before it started attempts nothing', async ({ assert }) => {
    const embedded = new EmbeddedWorker({
      start: () => assert.fail('it was stopped'),
      onError: () => assert.fail('it was stopped'),
    })
    await embedded.stop()
    await embedded.start()
  })
})

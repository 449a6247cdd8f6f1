import { test } from '@japa/runner'
import DurableShow from '../../commands/durable_show.ts'
import { DurableWorker } from '../../src/worker/worker.ts'
import { commandApp, type CommandApp } from './command_app.ts'

/** Runs everything that is due. */
async function work({ engine }: CommandApp): Promise<void> {
  const worker = new DurableWorker({ engine })
  await worker.start()
  await worker.whenIdle()
  await worker.stop()
}

test.group('durable:show', () => {
  test('shows a run, its history and what it waits for', async ({ assert, fs, cleanup }) => {
    const application = await commandApp(fs.basePath)
    const { app, ace, engine, printed } = application
    cleanup(() => app.terminate())
    const ref = engine.register('commands.show', '2', async (ctx, input: { line: number }) => {
      await ctx.localStep('read', () => input.line)
      await ctx.waitForSignal('approved')
    })
    await engine.start(ref, { line: 7 }, 'shown')
    await work(application)

    const command = await ace.create(DurableShow, ['shown'])
    await command.exec()
    command.assertSucceeded()
    assert.match(printed(), /workflow +commands\.show, version 2/)
    assert.match(printed(), /status +suspended/)
    assert.match(printed(), /input +\{"line":7\}/)
    assert.match(printed(), /0\|local_step\|read\|completed\|1\|/)
    assert.match(printed(), /1\|signal\|signal "approved"\|/)
  })

  test('--json prints the run, its history and its waits', async ({ assert, fs, cleanup }) => {
    const application = await commandApp(fs.basePath)
    const { app, ace, engine, printed } = application
    cleanup(() => app.terminate())
    const ref = engine.register('commands.show_json', '1', async (ctx) =>
      ctx.localStep('answer', () => 42)
    )
    await engine.start(ref, undefined, 'shown')
    await work(application)

    const command = await ace.create(DurableShow, ['shown', '--json'])
    await command.exec()
    const { run, history, waits } = JSON.parse(printed())
    assert.containSubset(run, { id: 'shown', status: 'completed', output: 42 })
    assert.lengthOf(history, 1)
    assert.containSubset(history[0], { seq: 0, kind: 'local_step', name: 'answer' })
    assert.isEmpty(waits)
  })

  test('a run that does not exist ends with exit code 1', async ({ assert, fs, cleanup }) => {
    const { app, ace, printed } = await commandApp(fs.basePath)
    cleanup(() => app.terminate())
    const command = await ace.create(DurableShow, ['nobody'])
    await command.exec()
    assert.equal(command.exitCode, 1)
    assert.include(printed(), 'There is no run "nobody"')
  })
})

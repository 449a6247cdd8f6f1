import { test } from '@japa/runner'
import DurableCancel from '../../commands/durable_cancel.ts'
import { commandApp, statusOf, work, type CommandApp } from './command_app.ts'

async function cancel({ ace }: CommandApp, ...argv: string[]) {
  ace.ui.logger.flushLogs()
  const command = await ace.create(DurableCancel, argv)
  await command.exec()
  return command
}

/** Runs that have made a step and wait for a signal, with what was done and undone. */
async function withWaiting(application: CommandApp, runIds: string[]): Promise<string[]> {
  const { engine } = application
  const effects: string[] = []
  const ref = engine.register('cancel.waiting', '1', async (ctx) => {
    const undo = () => effects.push(`undo ${ctx.runId}`)
    await ctx.localStep('do', () => effects.push(`do ${ctx.runId}`), { compensate: undo })
    await ctx.waitForSignal('approved')
  })
  for (const runId of runIds) await engine.start(ref, undefined, runId)
  await work(application)
  return effects
}

test.group('durable:cancel', () => {
  test('cancels runs by their ids, with a reason', async ({ assert, fs, cleanup }) => {
    const application = await commandApp(fs.basePath)
    const { app, engine, printed } = application
    cleanup(() => app.terminate())
    const effects = await withWaiting(application, ['a', 'b', 'c'])
    const command = await cancel(application, 'a', 'b', '--reason=ordered twice')
    assert.equal(command.exitCode, 0)
    assert.match(printed(), /2 runs cancelled/)
    const run = await engine.getRun('a')
    assert.containSubset(run, { status: 'cancelled', error: { message: 'ordered twice' } })
    assert.equal(await statusOf(application, 'c'), 'suspended')
    await work(application)
    assert.deepEqual(effects, ['do a', 'do b', 'do c'])
  })

  test('--compensate undoes the steps first', async ({ assert, fs, cleanup }) => {
    const application = await commandApp(fs.basePath)
    const { app, printed } = application
    cleanup(() => app.terminate())
    const effects = await withWaiting(application, ['a'])
    const command = await cancel(application, 'a', '--compensate')
    assert.equal(command.exitCode, 0)
    assert.match(printed(), /as soon as the steps have been undone/)
    await work(application)
    assert.equal(await statusOf(application, 'a'), 'cancelled')
    assert.deepEqual(effects, ['do a', 'undo a'])
  })

  test('a filter is about live runs, and changes nothing without --force (case 35)', async ({
    assert,
    fs,
    cleanup,
  }) => {
    const application = await commandApp(fs.basePath)
    const { app, engine, printed } = application
    cleanup(() => app.terminate())
    await withWaiting(application, ['a', 'b'])
    await engine.start('cancel.waiting', undefined, 'pending')
    await cancel(application, 'a')
    const dry = await cancel(application, '--workflow=cancel.waiting')
    assert.equal(dry.exitCode, 2)
    assert.include(printed(), 'Nothing was done. To cancel 2 runs, pass --force')

    const forced = await cancel(application, '--workflow=cancel.waiting', '--force', '--json')
    assert.equal(forced.exitCode, 0)
    assert.sameMembers(JSON.parse(printed()).done, ['b', 'pending'])
  })

  test('--status narrows to one status of live runs', async ({ assert, fs, cleanup }) => {
    const application = await commandApp(fs.basePath)
    const { app, engine, printed } = application
    cleanup(() => app.terminate())
    await withWaiting(application, ['a'])
    await engine.start('cancel.waiting', undefined, 'pending')
    await cancel(application, '--status=pending', '--force', '--json')
    assert.deepEqual(JSON.parse(printed()).done, ['pending'])
    const refused = await cancel(application, '--status=failed', '--force')
    assert.equal(refused.exitCode, 1)
    assert.match(printed(), /It takes pending, running, suspended, blocked/)
  })

  test('an empty filter is refused, and runs that have ended stay (case 35)', async ({
    assert,
    fs,
    cleanup,
  }) => {
    const application = await commandApp(fs.basePath)
    const { app, printed } = application
    cleanup(() => app.terminate())
    await withWaiting(application, ['a'])
    const nothing = await cancel(application, '--force')
    assert.equal(nothing.exitCode, 1)
    assert.match(printed(), /takes a filter/)
    for (const [runId, code] of [
      ['a', 0],
      ['a', 2],
      ['nobody', 1],
    ] as const) {
      const command = await cancel(application, runId)
      assert.equal(command.exitCode, code)
    }
    await cancel(application, 'a')
    assert.match(printed(), /Nothing is to be done with a: it has ended/)
  })
})

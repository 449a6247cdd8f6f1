import { test } from '@japa/runner'
import DurableRuns from '../../commands/durable_runs.ts'
import { FatalError } from '../../src/errors.ts'
import { commandApp, refusePayloads, work } from './command_app.ts'

test.group('durable:runs', () => {
  test('lists runs, newest first, with the way to the next page', async ({
    assert,
    fs,
    cleanup,
  }) => {
    const { app, ace, engine, printed } = await commandApp(fs.basePath)
    cleanup(() => app.terminate())
    const ref = engine.register('commands.list', '1', async () => {})
    for (const id of ['first', 'second', 'third']) await engine.start(ref, undefined, id)

    const command = await ace.create(DurableRuns, ['--limit=2'])
    await command.exec()
    command.assertSucceeded()
    const lines = printed().split('\n')
    assert.match(lines[1] ?? '', /third\|commands\.list \(1\)\|pending/)
    assert.match(lines[2] ?? '', /second/)
    const after = /--after=([\w-]+)/.exec(printed())?.[1] ?? ''
    assert.notInclude(printed(), 'first')

    ace.ui.logger.flushLogs()
    const next = await ace.create(DurableRuns, ['--limit=2', `--after=${after}`])
    await next.exec()
    assert.match(printed(), /first/)
    assert.notMatch(printed(), /second|--after/)
  })

  test('--json prints the page', async ({ assert, fs, cleanup }) => {
    const { app, ace, engine, printed } = await commandApp(fs.basePath)
    cleanup(() => app.terminate())
    const ref = engine.register('commands.json', '1', async () => {})
    await engine.start(ref, undefined, { runId: 'one', tags: ['red'] })
    await engine.start(ref, undefined, 'two')

    const command = await ace.create(DurableRuns, ['--json', '--tag=red', '--status=pending'])
    await command.exec()
    const { runs, next } = JSON.parse(printed())
    assert.deepEqual(
      runs.map(({ id }: { id: string }) => id),
      ['one']
    )
    assert.isNull(next)
  })

  test('--parent lists the children of a run, and --namespace those of one', async ({
    assert,
    fs,
    cleanup,
  }) => {
    const { app, ace, engine, printed } = await commandApp(fs.basePath)
    cleanup(() => app.terminate())
    const line = engine.register('commands.line', '1', async () => {})
    const file = engine.register('commands.file', '1', (ctx) => ctx.all(line, [1, 2]))
    await engine.start(file, undefined, 'file')
    await engine.start(line, 3, { runId: 'apart', namespace: 'blue' })
    await work({ engine })
    const idsOf = async (...argv: string[]) => {
      ace.ui.logger.flushLogs()
      const command = await ace.create(DurableRuns, ['--json', ...argv])
      await command.exec()
      return JSON.parse(printed()).runs.map(({ id }: { id: string }) => id)
    }
    assert.sameMembers(await idsOf('--parent=file'), ['file.child.0.0', 'file.child.0.1'])
    assert.deepEqual(await idsOf('--namespace=blue'), ['apart'])
  })

  test('marks handler runs, and --handles lists those of one run without payloads (P10)', async ({
    assert,
    fs,
    cleanup,
  }) => {
    const application = await commandApp(fs.basePath)
    const { app, ace, engine, printed } = application
    cleanup(() => app.terminate())
    const handler = engine.register('commands.handler', '1', async () => 'noted')
    const body = async () => {
      throw new FatalError('two fields', 'invalid_line')
    }
    const line = engine.register('commands.handled', '1', body, {
      onError: [{ workflow: handler }],
    })
    for (const runId of ['a', 'b']) await engine.start(line, undefined, runId)
    await work(application)
    const list = async (...argv: string[]) => {
      ace.ui.logger.flushLogs()
      const command = await ace.create(DurableRuns, argv)
      await command.exec()
      return { command, text: printed() }
    }
    const all = await list()
    assert.match(all.text, /b\.onError\.0\|.*\|completed\|\|the failure of b\|/)
    await refusePayloads(application)
    const ofOne = await list('--handles=a', '--json')
    const { runs, next } = JSON.parse(ofOne.text)
    assert.isNull(next)
    assert.lengthOf(runs, 1)
    assert.containSubset(runs[0], { id: 'a.onError.0', handles: { runId: 'a', as: 'on_error' } })
    for (const key of ['input', 'output', 'error', 'tags', 'attributes'])
      assert.notProperty(runs[0], key)
    for (const argv of [['--handles=nobody'], ['--handles=a', '--status=failed']]) {
      const { command } = await list(...argv)
      assert.equal(command.exitCode, 1)
    }
  })

  test('without a match says so', async ({ assert, fs, cleanup }) => {
    const { app, ace, printed } = await commandApp(fs.basePath)
    cleanup(() => app.terminate())
    const command = await ace.create(DurableRuns, ['--workflow=none'])
    await command.exec()
    command.assertSucceeded()
    assert.include(printed(), 'No runs')
  })

  test('a flag that is not valid ends with exit code 1', async ({ assert, fs, cleanup }) => {
    const { app, ace, printed } = await commandApp(fs.basePath)
    cleanup(() => app.terminate())
    for (const flag of [
      '--status=done',
      '--limit=0',
      '--limit=1001',
      '--limit=2.5',
      '--parent=a b',
      '--tag=a b',
      '--after=r1',
    ]) {
      const command = await ace.create(DurableRuns, [flag])
      await command.exec()
      assert.equal(command.exitCode, 1, flag)
    }
    assert.include(printed(), "Invalid --status: got 'done', expected one of pending, running")
    assert.include(printed(), 'Invalid --limit: got 2.5, expected a whole number from 1 to 1000')
    assert.include(printed(), "Invalid --parent: got 'a b', expected a run id")
    assert.include(printed(), 'Invalid cursor "r1"')
  })
})

import { test } from '@japa/runner'
import DurableRetry from '../../commands/durable_retry.ts'
import { FatalError } from '../../src/errors.ts'
import { commandApp, statusOf, work, type CommandApp } from './command_app.ts'
import { loseRun } from './lost_runs.ts'

async function retry({ ace }: CommandApp, ...argv: string[]) {
  ace.ui.logger.flushLogs()
  const command = await ace.create(DurableRetry, argv)
  await command.exec()
  return command
}

/** Runs of a workflow that fails until `mend` is called; their ids are `<workflow>-<number>`. */
async function withFailures(
  application: CommandApp,
  params: { workflow: string; count: number; tags?: string[] }
): Promise<{ mend: () => void }> {
  const { engine } = application
  const { workflow, count, tags = [] } = params
  let isMended = false
  const ref = engine.register(workflow, '1', async () => {
    if (!isMended) throw new FatalError('broken', 'broken')
  })
  for (let index = 0; index < count; index++)
    await engine.start(ref, undefined, { runId: `${workflow}-${index}`, tags })
  await work(application)
  return { mend: () => (isMended = true) }
}

test.group('durable:retry', () => {
  test('runs failed and dead runs again by their ids (DL-9, OE-30)', async ({
    assert,
    fs,
    cleanup,
  }) => {
    const application = await commandApp(fs.basePath, { maxRecoveryAttempts: 1 })
    const { app, engine, printed } = application
    cleanup(() => app.terminate())
    const { mend } = await withFailures(application, { workflow: 'retry.failed', count: 1 })
    const ref = engine.register('retry.dead', '1', (ctx) => ctx.localStep('charge', () => 1))
    await engine.start(ref, undefined, 'dead')
    await loseRun(engine, { runId: 'dead', step: 'charge', times: 2 })
    await work(application)
    assert.equal(await statusOf(application, 'dead'), 'dead')

    mend()
    const command = await retry(application, 'retry.failed-0', 'dead')
    assert.equal(command.exitCode, 0)
    assert.match(printed(), /2 runs retried/)
    await work(application)
    assert.equal(await statusOf(application, 'retry.failed-0'), 'completed')
    const again = await engine.getRun('dead')
    assert.containSubset(again, { status: 'completed', recoveryAttempts: 0 })
  })

  test('a filter counts and lists, and changes nothing without --force (case 35)', async ({
    assert,
    fs,
    cleanup,
  }) => {
    const application = await commandApp(fs.basePath)
    const { app, engine, printed } = application
    cleanup(() => app.terminate())
    const { mend } = await withFailures(application, { workflow: 'retry.dry', count: 3 })
    mend()
    const dry = await retry(application, '--status=failed')
    assert.equal(dry.exitCode, 2)
    assert.match(printed(), /retry\.dry-0\|retry\.dry \(1\)\|failed\|broken/)
    assert.include(printed(), 'Nothing was done. To retry 3 runs, pass --force')
    assert.equal(await statusOf(application, 'retry.dry-0'), 'failed')

    const forced = await retry(application, '--status=failed', '--force')
    assert.equal(forced.exitCode, 0)
    assert.match(printed(), /3 runs retried/)
    await work(application)
    const { runs } = await engine.listRuns({ status: 'completed' })
    assert.lengthOf(runs, 3)
  })

  test('at a terminal it asks, and acts on yes alone', async ({ assert, fs, cleanup }) => {
    const application = await commandApp(fs.basePath)
    const { app, ace } = application
    cleanup(() => app.terminate())
    await withFailures(application, { workflow: 'retry.asked', count: 2 })
    const { isTTY } = process.stdin
    process.stdin.isTTY = true
    cleanup(() => void (process.stdin.isTTY = isTTY))
    const answer = async (how: 'accept' | 'reject') => {
      const command = await ace.create(DurableRetry, ['--workflow=retry.asked'])
      command.prompt.trap('Do you want to retry 2 runs?')[how]()
      await command.exec()
      return command.exitCode
    }
    assert.equal(await answer('reject'), 2)
    assert.equal(await statusOf(application, 'retry.asked-0'), 'failed')
    assert.equal(await answer('accept'), 0)
    assert.equal(await statusOf(application, 'retry.asked-0'), 'pending')
  })

  test('filters narrow each other', async ({ assert, fs, cleanup }) => {
    const application = await commandApp(fs.basePath)
    const { app, printed } = application
    cleanup(() => app.terminate())
    await withFailures(application, { workflow: 'retry.red', count: 2, tags: ['red'] })
    await withFailures(application, { workflow: 'retry.blue', count: 2, tags: ['blue'] })
    await retry(application, '--tag=red', '--workflow=retry.blue', '--json')
    assert.deepEqual(JSON.parse(printed()), { dryRun: true, count: 0, runs: [] })
    const command = await retry(
      application,
      '--tag=red',
      '--namespace=default',
      '--force',
      '--json'
    )
    assert.equal(command.exitCode, 0)
    const { done, ...rest } = JSON.parse(printed())
    assert.sameMembers(done, ['retry.red-0', 'retry.red-1'])
    assert.deepEqual(rest, { dryRun: false, unchanged: [], errors: [] })
    assert.equal(await statusOf(application, 'retry.blue-0'), 'failed')
  })

  test('pages through more runs than one page has, each once', async ({ assert, fs, cleanup }) => {
    const application = await commandApp(fs.basePath)
    const { app, printed } = application
    cleanup(() => app.terminate())
    await withFailures(application, { workflow: 'retry.many', count: 501 })
    await retry(application, '--workflow=retry.many', '--json')
    const preview = JSON.parse(printed())
    assert.equal(preview.count, 501)
    assert.lengthOf(preview.runs, 50)
    await retry(application, '--workflow=retry.many', '--force', '--json')
    assert.lengthOf(new Set(JSON.parse(printed()).done), 501)
  })

  for (const { title, argv, code, message } of [
    { title: 'no id and no filter (case 35)', argv: [], code: 1, message: /takes a filter/ },
    { title: '--force alone', argv: ['--force'], code: 1, message: /takes a filter/ },
    {
      title: 'ids beside a filter',
      argv: ['one', '--status=failed'],
      code: 1,
      message: /not both: one and --status/,
    },
    {
      title: 'a status of runs that cannot be retried',
      argv: ['--status=completed'],
      code: 1,
      message: /with runs that are completed\. It takes failed, dead/,
    },
    { title: 'an unknown status', argv: ['--status=gone'], code: 1, message: /No such status/ },
    {
      title: 'a tag that there cannot be',
      argv: ['--tag=a b'],
      code: 1,
      message: /Invalid --tag: got 'a b', expected a name/,
    },
    { title: 'an unknown run', argv: ['nobody'], code: 1, message: /no run "nobody"/ },
    {
      title: 'input that is not JSON',
      argv: ['one', '--input={'],
      code: 1,
      message: /is not JSON/,
    },
    {
      title: 'input for several runs',
      argv: ['one', 'two', '--input=1'],
      code: 1,
      message: /the id of one run/,
    },
    {
      title: 'input for an unknown run',
      argv: ['nobody', '--input=1'],
      code: 1,
      message: /no run "nobody"/,
    },
  ]) {
    test(`refuses ${title} with exit code ${code}`, async ({ assert, fs, cleanup }) => {
      const application = await commandApp(fs.basePath)
      cleanup(() => application.app.terminate())
      const command = await retry(application, ...argv)
      assert.equal(command.exitCode, code)
      assert.match(application.printed(), message)
    })
  }

  test('refuses a filter that a script left empty (case 35)', async ({ assert, fs, cleanup }) => {
    const application = await commandApp(fs.basePath)
    cleanup(() => application.app.terminate())
    for (const flag of ['--tag=', '--workflow=', '--namespace=', '--status='])
      await assert.rejects(() => retry(application, flag, '--force'), /Missing value for option/)
  })

  test('a run with which nothing is to be done ends with exit code 2', async ({
    assert,
    fs,
    cleanup,
  }) => {
    const application = await commandApp(fs.basePath)
    const { app, engine, printed } = application
    cleanup(() => app.terminate())
    const ref = engine.register('retry.fine', '1', async () => {})
    await engine.start(ref, undefined, 'fine')
    await work(application)
    const command = await retry(application, 'fine')
    assert.equal(command.exitCode, 2)
    assert.match(printed(), /Nothing is to be done with fine/)
  })

  test('one run that cannot be retried keeps no other from it, and the exit code is 1', async ({
    assert,
    fs,
    cleanup,
  }) => {
    const application = await commandApp(fs.basePath)
    const { app, printed } = application
    cleanup(() => app.terminate())
    await withFailures(application, { workflow: 'retry.mixed', count: 1 })
    const command = await retry(application, 'nobody', 'retry.mixed-0', '--json')
    assert.equal(command.exitCode, 1)
    assert.containSubset(JSON.parse(printed()), {
      done: ['retry.mixed-0'],
      errors: [{ runId: 'nobody' }],
    })
    assert.equal(await statusOf(application, 'retry.mixed-0'), 'pending')
  })

  test('--input starts a new run with other input and leaves the old one (DL-50)', async ({
    assert,
    fs,
    cleanup,
  }) => {
    const application = await commandApp(fs.basePath)
    const { app, engine, printed } = application
    cleanup(() => app.terminate())
    const ref = engine.register('retry.input', '1', async (_, input: { order: number }) => {
      if (input.order < 0) throw new FatalError('negative', 'negative')
      return input.order
    })
    await engine.start(ref, { order: -7 }, { runId: 'minus', tags: ['vip'] })
    await work(application)
    const command = await retry(application, 'minus', '--input={"order":7}', '--json')
    assert.equal(command.exitCode, 0)
    const { runId } = JSON.parse(printed())
    assert.match(runId, /^minus~retry~[0-9a-f]{8}$/)
    await work(application)
    assert.containSubset(await engine.getRun(runId), { output: 7, tags: ['vip'] })
    assert.equal(await statusOf(application, 'minus'), 'failed')
  })
})

import { test } from '@japa/runner'
import DurableDeadRuns from '../../commands/durable_dead_runs.ts'
import DurableRuns from '../../commands/durable_runs.ts'
import DurableShow from '../../commands/durable_show.ts'
import type { DeadLetter } from '../../src/types/workflow.ts'
import { commandApp, refusePayloads, work, type CommandApp } from './command_app.ts'
import { loseRun } from './lost_runs.ts'

/** Two dead runs of one workflow with a handler, and one of another without. */
async function withDeadRuns(application: CommandApp): Promise<void> {
  const { engine } = application
  const handler = engine.register('dead.handler', '1', async () => 'told')
  const body = (name: string) =>
    engine.register(name, '1', (ctx) => ctx.localStep('charge', () => 1), {
      ...(name === 'dead.handled' && { deadLetterWorkflow: handler }),
    })
  const handled = body('dead.handled')
  const alone = body('dead.alone')
  for (const [runId, ref] of [
    ['first', handled],
    ['second', handled],
    ['third', alone],
  ] as const) {
    await engine.start(ref, undefined, runId)
    await loseRun(engine, { runId, step: 'charge', times: 2 })
    await work(application)
  }
}

test.group('durable:dead-runs', () => {
  test('groups dead runs by workflow and cause, with their handler runs', async ({
    assert,
    fs,
    cleanup,
  }) => {
    const application = await commandApp(fs.basePath, { maxRecoveryAttempts: 1 })
    const { app, ace, printed } = application
    cleanup(() => app.terminate())
    await withDeadRuns(application)

    const command = await ace.create(DurableDeadRuns, [])
    await command.exec()
    command.assertSucceeded()
    const [, alone, handled] = printed().split('\n')
    assert.match(alone ?? '', /dead\.alone\|max_recovery_attempts\|charge\|1\|third\|.*\|none\|/)
    assert.match(
      handled ?? '',
      /dead\.handled\|max_recovery_attempts\|charge\|2\|second\|.*\|dlq:second: completed\|2 completed/
    )
  })

  test('--json prints the groups, and filters narrow them', async ({ assert, fs, cleanup }) => {
    const application = await commandApp(fs.basePath, { maxRecoveryAttempts: 1 })
    const { app, ace, printed } = application
    cleanup(() => app.terminate())
    await withDeadRuns(application)

    const command = await ace.create(DurableDeadRuns, ['--json', '--workflow=dead.handled'])
    await command.exec()
    const { count, groups } = JSON.parse(printed())
    assert.equal(count, 2)
    assert.lengthOf(groups, 1)
    assert.containSubset(groups[0], {
      ...{ workflow: 'dead.handled', code: 'max_recovery_attempts', steps: ['charge'], count: 2 },
      newest: { runId: 'second', handler: { runId: 'dlq:second', status: 'completed' } },
      handlers: { completed: 2 },
    })
  })

  test('the handler of the configuration takes runs whose workflow names none (DL-21, DL-22)', async ({
    assert,
    fs,
    cleanup,
  }) => {
    const application = await commandApp(fs.basePath, {
      maxRecoveryAttempts: 1,
      deadLetterWorkflow: () => 'dead.default',
    })
    const { app, engine } = application
    cleanup(() => app.terminate())
    engine.register('dead.default', '1', async (_, dead: DeadLetter) => dead.deadRunId)
    await withDeadRuns(application)
    const ofAlone = await engine.getRun('dlq:third')
    assert.containSubset(ofAlone, { workflow: 'dead.default', output: 'third' })
    const ofHandled = await engine.getRun('dlq:first')
    assert.equal(ofHandled?.workflow, 'dead.handler')
  })

  test('reads the payloads of no run, handlers included (P10)', async ({ assert, fs, cleanup }) => {
    const application = await commandApp(fs.basePath, { maxRecoveryAttempts: 1 })
    const { app, ace, printed } = application
    cleanup(() => app.terminate())
    await withDeadRuns(application)
    await refusePayloads(application)
    const command = await ace.create(DurableDeadRuns, ['--json'])
    await command.exec()
    command.assertSucceeded()
    assert.containSubset(JSON.parse(printed()).groups, [
      { workflow: 'dead.alone', steps: ['charge'], newest: { handler: null } },
      { workflow: 'dead.handled', steps: ['charge'], newest: { handler: { isRetired: false } } },
    ])
  })

  test('without dead runs says so and ends with exit code 2', async ({ assert, fs, cleanup }) => {
    const { app, ace, printed } = await commandApp(fs.basePath)
    cleanup(() => app.terminate())
    const command = await ace.create(DurableDeadRuns, [])
    await command.exec()
    assert.equal(command.exitCode, 2)
    assert.include(printed(), 'No dead runs')
  })

  test('dead runs and their handlers are linked both ways', async ({ assert, fs, cleanup }) => {
    const application = await commandApp(fs.basePath, { maxRecoveryAttempts: 1 })
    const { app, ace, printed } = application
    cleanup(() => app.terminate())
    await withDeadRuns(application)
    const show = async (runId: string) => {
      ace.ui.logger.flushLogs()
      const command = await ace.create(DurableShow, [runId])
      await command.exec()
      return printed()
    }
    assert.match(await show('first'), /^handled by +dlq:first \(dead\.handler\): completed$/m)
    assert.match(await show('dlq:first'), /^handles +the dead run first$/m)

    ace.ui.logger.flushLogs()
    const list = await ace.create(DurableRuns, ['--workflow=dead.handler'])
    await list.exec()
    assert.match(printed(), /dlq:second\|dead\.handler \(1\)\|completed\|\|the dead run second\|/)
  })
})

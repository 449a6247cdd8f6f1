import { setImmediate as nextRound } from 'node:timers/promises'
import { test } from '@japa/runner'
import { internalsOf } from '../../src/engine/engine.ts'
import { currentScope } from '../../src/engine/scope.ts'
import { DurableApp } from '../support/durable_app.ts'
import { Gate } from '../support/gate.ts'
import { until } from '../support/until.ts'

/** As a rejection that nobody handles is attributed: Japa takes real ones for failures of the tests. */
const rejectUnhandled = (error: Error) => currentScope()?.fail(error)

test.group('The body of a suspended run', (group) => {
  let app: DurableApp
  group.each.setup(() => {
    app = new DurableApp()
    return () => app.close()
  })

  test('fails its run at once with a rejection that nobody handles, and the log has it', async ({
    assert,
  }) => {
    const gate = new Gate()
    const workflow = app.engine.register('main', '1', async (ctx) => {
      void gate.pass().then(() => rejectUnhandled(new Error('lost')))
      await ctx.sleep(3_600_000)
    })
    const worker = await app.work()
    await app.engine.start(workflow, undefined, 'r')
    await until(async () => {
      const run = await app.engine.getRun('r')
      return run?.status === 'suspended'
    })
    await worker.whenIdle()
    gate.open()
    const run = await app.engine.waitForRun('r')
    assert.deepEqual([run.status, run.error?.message], ['failed', 'lost'])
    const lines = app.log.lines.filter(({ level }) => level === 'warn')
    assert.deepEqual(
      lines.map(({ args }) => args[1]),
      ['A promise of a body was rejected while its run was suspended']
    )
  })

  test('fails its run at once with a rejection that came while the suspension was written', async ({
    assert,
  }) => {
    const { commits } = internalsOf(app.engine)
    const write = commits.write.bind(commits)
    const gate = new Gate()
    commits.write = async (wanted) => {
      const answer = await write(wanted)
      if (wanted.type === 'turn' && wanted.end.kind === 'suspend') {
        gate.open()
        await nextRound()
        await nextRound()
      }
      return answer
    }
    const workflow = app.engine.register('main', '1', async (ctx) => {
      void gate.pass().then(() => rejectUnhandled(new Error('lost')))
      await ctx.sleep(3_600_000)
    })
    await app.work()
    const handle = await app.engine.start(workflow, undefined)
    const run = await app.engine.waitForRun(handle.runId)
    assert.deepEqual([run.status, run.error?.message], ['failed', 'lost'])
  })
})

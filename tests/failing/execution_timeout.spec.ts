import { test } from '@japa/runner'
import { internalsOf } from '../../src/engine/engine.ts'
import { FatalError } from '../../src/errors.ts'
import type { WorkflowCtx } from '../../src/types/context.ts'
import { KINDS, onEach } from '../stores/databases.ts'
import { Gate } from '../support/gate.ts'
import { reaches } from '../support/reaches.ts'
import { until } from '../support/until.ts'
import { MAIN, Site, statusOf } from './site.ts'

const HOUR = 3_600_000
const executionTimeout = '1 hour'

onEach(KINDS, (kind) =>
  test.group(`Execution time-out, on ${kind}`, (group) => {
    let site: Site
    let calls: string[]
    group.each.setup(async () => {
      site = await Site.on(kind)
      calls = []
      return () => site.close()
    })

    test('cancels a run that executes: its step is aborted', async ({ assert }) => {
      const begun = new Gate()
      const { app, engine } = await site.app({}, { leaseMs: 10 * HOUR, hangMs: 11 * HOUR })
      const body = (ctx: WorkflowCtx) =>
        ctx.localStep('slow', ({ signal }) => begun.pass(signal).catch(() => calls.push('aborted')))
      engine.register('main', '1', body, { executionTimeout })
      await app.work()
      const { runId } = await engine.start(MAIN)
      await begun.reached()
      await engine.advanceClock(HOUR - 1_000)
      assert.equal(await statusOf(engine, runId), 'running')
      await engine.advanceClock(1_000)
      const run = await engine.waitForRun(runId)
      assert.deepEqual([run.status, run.errorCode], ['cancelled', 'execution_timeout'])
      assert.include(run.error?.message, 'executionTimeout')
      await until(() => calls.includes('aborted'))
    })

    test('cancels a run that waits, with the children it awaits, and follows no route (OE-10)', async ({
      assert,
    }) => {
      const { app, engine } = await site.app()
      engine.register('handler', '1', () => void calls.push('handled'))
      engine.register('waiting', '1', (ctx) => ctx.waitForSignal('never'))
      engine.register('main', '1', (ctx) => ctx.child('waiting'), {
        ...{
          executionTimeout,
          onError: [{ workflow: 'handler' }, { code: 'execution_timeout', workflow: 'handler' }],
        },
      })
      await app.work()
      const { runId } = await engine.start(MAIN)
      await reaches(engine, `${runId}.child.0`, 'suspended')
      await engine.advanceClock(HOUR)
      for (const id of [runId, `${runId}.child.0`]) {
        const run = await engine.waitForRun(id)
        assert.deepEqual([run.status, run.errorCode], ['cancelled', 'execution_timeout'])
      }
      assert.isNull(await engine.getRun(`${runId}.onError.0`))
      assert.deepEqual(calls, [])
    })

    test('cancels a run whose workflow no worker knows', async ({ assert }) => {
      const starting = await site.app()
      starting.engine.register('main', '1', () => {}, { executionTimeout })
      const { runId } = await starting.engine.start(MAIN)
      const { engine } = await site.working({ other: () => {} })
      await engine.advanceClock(HOUR)
      const run = await engine.waitForRun(runId)
      assert.deepEqual([run.status, run.errorCode], ['cancelled', 'execution_timeout'])
    })

    test('counts for children too, and a parent sees it by status and code', async ({ assert }) => {
      const { app, engine } = await site.app()
      engine.register('waiting', '1', (ctx) => ctx.waitForSignal('never'), { executionTimeout })
      engine.register('main', '1', async (ctx) => {
        const seen: unknown[] = []
        const note = (error: { code: string; status: string }) =>
          void seen.push([error.code, error.status])
        await ctx.child('waiting').catch(note)
        await ctx.all('waiting', [1]).catch(note)
        return seen
      })
      await app.work()
      const { runId } = await engine.start(MAIN)
      for (const id of ['.child.0', '.child.1.0']) {
        await reaches(engine, `${runId}${id}`, 'suspended')
        await engine.advanceClock(HOUR)
        await engine.waitForRun(`${runId}${id}`)
      }
      const run = await engine.waitForRun(runId)
      const timedOut = ['execution_timeout', 'cancelled']
      assert.deepEqual([run.status, run.output], ['completed', [timedOut, timedOut]])
    })

    test('leaves a run alone that ended in time, and one that has none', async ({ assert }) => {
      const { app, engine } = await site.app()
      engine.register('main', '1', () => 'done', { executionTimeout })
      engine.register(
        'fails',
        '1',
        (ctx) =>
          ctx.localStep('fail', () => {
            throw new FatalError('no')
          }),
        { executionTimeout }
      )
      engine.register('patient', '1', (ctx) => ctx.waitForSignal('go'))
      await app.work()
      const started = [await engine.start(MAIN), await engine.start('fails')]
      const patient = await engine.start('patient')
      for (const { runId } of started) await engine.waitForRun(runId)
      await reaches(engine, patient.runId, 'suspended')
      await engine.advanceClock(100 * HOUR)
      const { store: open } = internalsOf(engine)
      const store = await open()
      assert.deepEqual(await store.findOverdue(10), [])
      await engine.signal('go', 'at last')
      assert.equal(await patient.result(), 'at last')
      const statuses = await Promise.all(started.map(({ runId }) => engine.getRun(runId)))
      assert.deepEqual(
        statuses.map((run) => run?.status),
        ['completed', 'failed']
      )
    })
  })
)

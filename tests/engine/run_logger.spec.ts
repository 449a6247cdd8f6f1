import { test } from '@japa/runner'
import { defineStep } from '../../src/step.ts'
import { BoundLogger, type EngineLogger } from '../../src/engine/run_logger.ts'
import { DurableApp } from '../support/durable_app.ts'
import { LogCapture } from '../support/log_capture.ts'

/** A logger that gives children, as those of applications do. */
class Parent extends LogCapture implements EngineLogger {
  readonly bound: Record<string, unknown>[] = []
  readonly ofChildren = new LogCapture()

  child(facts: Record<string, unknown>) {
    this.bound.push(facts)
    return this.ofChildren
  }
}

test.group('Logger of a run', () => {
  test('is made once, at its first line, with the facts', ({ assert }) => {
    const parent = new Parent()
    const logger = new BoundLogger(parent, { runId: 'r1' })
    assert.deepEqual(parent.bound, [])
    logger.info('one')
    logger.error({ at: 2 }, 'two')
    assert.deepEqual(parent.bound, [{ runId: 'r1' }])
    assert.deepEqual(parent.ofChildren.lines, [
      { level: 'info', args: ['one'] },
      { level: 'error', args: [{ at: 2 }, 'two'] },
    ])
    assert.deepEqual(parent.lines, [])
  })

  test('of a body is bound to its run, and that of a step and of its compensation to the step too', async ({
    assert,
    cleanup,
  }) => {
    const parent = new Parent()
    const app = new DurableApp({ logger: parent })
    cleanup(() => app.close())
    app.engine.register('saga', '1', async (ctx) => {
      ctx.log.info('body')
      await ctx.localStep('charge', ({ log }) => log.info('step'), {
        compensate: (_, { log }) => log.info('undone'),
      })
      throw new Error('no')
    })
    await app.work()
    await app.engine.start('saga', null, 'r1')
    await app.engine.waitForRun('r1')
    const run = { runId: 'r1', workflow: 'saga' }
    const step = { ...run, step: 'charge' }
    const undone = { ...run, step: 'compensation of charge' }
    assert.deepEqual(parent.bound, [run, step, undone])
    assert.deepEqual(
      parent.ofChildren.lines.map(({ args: [line] }) => line),
      ['body', 'step', 'undone']
    )
  })

  test('is the application’s own where that has no children', ({ assert }) => {
    const log = new LogCapture()
    new BoundLogger(log, { runId: 'r1' }).warn('one')
    assert.deepEqual(log.lines, [{ level: 'warn', args: ['one'] }])
  })
})

test.group('Failed attempts', () => {
  test('each one that is followed by another is a warning with the run, the step and the failure; the last one is not', async ({
    assert,
    cleanup,
  }) => {
    const app = new DurableApp()
    cleanup(() => app.close())
    app.engine.register('flaky', '1', (ctx) =>
      ctx.localStep(
        'call',
        ({ attempt }) => {
          throw new Error(`no ${attempt}`)
        },
        { retries: 2, backoffMs: 1 }
      )
    )
    await app.work()
    await app.engine.start('flaky', null, 'r1')
    await app.engine.waitForRun('r1')
    const warnings = app.log.lines.filter(({ level }) => level === 'warn')
    assert.lengthOf(warnings, 2)
    for (const [index, { args }] of warnings.entries()) {
      const attempt = index + 1
      const [facts, line] = args
      assert.containSubset(facts, { runId: 'r1', workflow: 'flaky', step: 'call', attempt })
      assert.containSubset(facts, { err: { message: `no ${attempt}` } })
      assert.match(String(line), new RegExp(`^Step "call" of r1 .*Error: no ${attempt}$`))
    }
  })

  test('one of a compensation names what undoes: the step, or the function by what it undoes', async ({
    assert,
    cleanup,
  }) => {
    const app = new DurableApp()
    cleanup(() => app.close())
    const undo = (attempt: number) => {
      if (attempt === 1) throw new Error('not yet')
    }
    const refund = defineStep('run_logger.refund', (_: number, { attempt }) => undo(attempt), {
      backoffMs: 1,
    })
    app.engine.register('saga', '1', async (ctx) => {
      await ctx.localStep('charge', () => 1, { compensate: refund })
      await ctx.localStep('reserve', () => 2, { compensate: (_, { attempt }) => undo(attempt) })
      throw new Error('no')
    })
    await app.work()
    await app.engine.start('saga', null, 'r1')
    await app.engine.waitForRun('r1')
    const lines = app.log.lines.filter(({ level }) => level === 'warn').map(({ args }) => args[1])
    assert.lengthOf(lines, 2)
    assert.match(String(lines[0]), /^Step "compensation of reserve" of r1 has failed, attempt 1;/)
    assert.match(String(lines[1]), /^Step "run_logger\.refund" of r1 has failed, attempt 1;/)
  })
})

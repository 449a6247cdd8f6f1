import { test } from '@japa/runner'
import { RunLog } from '../../src/worker/run_log.ts'
import { LogCapture } from '../support/log_capture.ts'

const run = { runId: 'a', workflow: 'orders.ship', version: '1', namespace: 'default' }
const error = { name: 'NoStock', message: 'none left\n  of 7', code: 'no_stock', stack: 'at' }

test.group('Run log', () => {
  test('one line holds run, workflow, code and message', ({ assert }) => {
    const log = new LogCapture()
    const lines = new RunLog({ log, fields: false })
    lines.write({ event: 'run.started', ...run })
    lines.write({ event: 'run.failed', status: 'failed', ...run, error })
    lines.write({
      ...{ event: 'run.failed', status: 'dead', ...run },
      error: { name: 'Error', message: 'why' },
    })
    assert.deepEqual(log.lines, [
      { level: 'info', args: ['run started: orders.ship a'] },
      { level: 'error', args: ['run failed: orders.ship a: no_stock: none left of 7'] },
      { level: 'error', args: ['run dead: orders.ship a: Error: why'] },
    ])
  })

  test('with fields the facts come with the line', ({ assert }) => {
    const log = new LogCapture()
    new RunLog({ log, fields: true }).write({
      event: 'run.failed',
      status: 'failed',
      ...run,
      error,
    })
    assert.deepEqual(log.lines[0]?.args, [
      { status: 'failed', ...run, error },
      'run failed: orders.ship a: no_stock: none left of 7',
    ])
  })

  test('a run that is blocked again is told of when something else is wrong', ({ assert }) => {
    const log = new LogCapture()
    const lines = new RunLog({ log, fields: false })
    const other = { ...error, message: 'another' }
    for (const shown of [error, error, other, error])
      lines.write({ event: 'run.blocked', ...run, error: shown })
    lines.write({ event: 'run.blocked', ...run, runId: 'b', error })
    lines.write({ event: 'run.completed', ...run })
    lines.write({ event: 'run.blocked', ...run, error })
    assert.deepEqual(
      log.lines.map(({ args }) => args[0]),
      [
        'run blocked: orders.ship a: no_stock: none left of 7',
        'run blocked: orders.ship a: no_stock: another',
        'run blocked: orders.ship a: no_stock: none left of 7',
        'run blocked: orders.ship b: no_stock: none left of 7',
        'run completed: orders.ship a',
        'run blocked: orders.ship a: no_stock: none left of 7',
      ]
    )
  })

  test('what does not fit the history at the same position is told of once, whatever the code asks for', ({
    assert,
  }) => {
    const log = new LogCapture()
    const lines = new RunLog({ log, fields: false })
    for (const [message, seq] of [
      ['asked for a', 3],
      ['asked for b', 3],
      ['asked for b', 4],
    ] as const) {
      const mismatch = { name: 'E', message, code: 'non_determinism', details: { seq } }
      lines.write({ event: 'run.blocked', ...run, error: mismatch })
    }
    assert.deepEqual(
      log.lines.map(({ args }) => args[0]),
      [
        'run blocked: orders.ship a: non_determinism: asked for a',
        'run blocked: orders.ship a: non_determinism: asked for b',
      ]
    )
  })
})

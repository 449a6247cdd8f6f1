import { test } from '@japa/runner'
import { mock } from 'node:test'
import { RunEventEmitter } from '../../src/engine/events.ts'
import { WorkReport, type WorkCounts } from '../../src/worker/work_report.ts'

const run = { runId: 'a', workflow: 'w', version: '1', namespace: 'default' }

const none: WorkCounts = {
  ...{ started: 0, completed: 0, routed: 0, unrouted: 0 },
  ...{ failed: 0, cancelled: 0, blocked: 0, stalled: 0 },
}

test.group('Work report', () => {
  test('tells each event under its name, and counts them', ({ assert, cleanup }) => {
    const emitter = new RunEventEmitter(() => {})
    const events: unknown[] = []
    const report = new WorkReport(emitter, { event: (event) => events.push(event), summary() {} })
    cleanup(() => report.stop())
    emitter.emit('run.started', run)
    emitter.emit('run.completed', run)
    assert.deepEqual(events, [
      { event: 'run.started', ...run },
      { event: 'run.completed', ...run },
    ])
    assert.deepEqual(report.counts, { ...none, started: 1, completed: 1 })
  })

  test('tells of routed, unrouted and cancelled runs too', ({ assert, cleanup }) => {
    const emitter = new RunEventEmitter(() => {})
    const events: string[] = []
    const tell = ({ event }: { event: string }) => void events.push(event)
    const report = new WorkReport(emitter, { event: tell, summary() {} })
    cleanup(() => report.stop())
    const error = { name: 'Error', message: 'why' }
    emitter.emit('run.routed', { ...run, error, handlerRunId: 'a.onError.0' })
    emitter.emit('run.unrouted', { ...run, error, reason: 'a loop' })
    emitter.emit('run.cancelled', run)
    assert.deepEqual(events, ['run.routed', 'run.unrouted', 'run.cancelled'])
    assert.deepEqual(report.counts, { ...none, routed: 1, unrouted: 1, cancelled: 1 })
  })

  test('counts a blocked run when it becomes blocked, and not each time it is tried', ({
    assert,
    cleanup,
  }) => {
    const emitter = new RunEventEmitter(() => {})
    const events: unknown[] = []
    const report = new WorkReport(emitter, { event: (event) => events.push(event), summary() {} })
    cleanup(() => report.stop())
    const error = { name: 'Error', message: 'why', code: 'foreign_await' }
    for (const runId of ['a', 'b', 'a', 'b', 'a'])
      emitter.emit('run.blocked', { ...run, runId, error })
    assert.equal(report.counts.blocked, 2)
    assert.lengthOf(events, 2)
    emitter.emit('run.completed', run)
    emitter.emit('run.blocked', { ...run, error })
    assert.equal(report.counts.blocked, 3)
  })

  test('sums up after 30 s when something has happened, and is silent otherwise', ({
    assert,
    cleanup,
  }) => {
    mock.timers.enable({ apis: ['setInterval'] })
    cleanup(() => mock.timers.reset())
    const emitter = new RunEventEmitter(() => {})
    const summaries: WorkCounts[] = []
    const output = { event() {}, summary: (counts: WorkCounts) => summaries.push({ ...counts }) }
    const report = new WorkReport(emitter, output, globalThis)
    cleanup(() => report.stop())
    mock.timers.tick(30_000)
    assert.isEmpty(summaries)
    emitter.emit('run.started', run)
    mock.timers.tick(29_999)
    assert.isEmpty(summaries)
    mock.timers.tick(60_000)
    assert.deepEqual(summaries, [{ ...none, started: 1 }])
  })

  test('ends with what it has not summed up yet', ({ assert }) => {
    const emitter = new RunEventEmitter(() => {})
    const summaries: WorkCounts[] = []
    const report = new WorkReport(emitter, {
      event() {},
      summary: (counts) => summaries.push({ ...counts }),
    })
    emitter.emit('run.started', run)
    report.stop()
    report.stop()
    assert.deepEqual(summaries, [{ ...none, started: 1 }])
  })

  test('says nothing after it has been stopped', ({ assert }) => {
    const emitter = new RunEventEmitter(() => {})
    const events: unknown[] = []
    const report = new WorkReport(emitter, { event: (event) => events.push(event), summary() {} })
    report.stop()
    report.stop()
    emitter.emit('run.started', run)
    assert.isEmpty(events)
  })
})

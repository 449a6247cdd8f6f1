import { test } from '@japa/runner'
import { selectedPages } from '../../src/commands/run_selection.ts'
import { commandApp, work } from './command_app.ts'

test.group('Selected runs', () => {
  test('a run that changes its status while pages are read is met, and once', async ({
    assert,
    fs,
    cleanup,
  }) => {
    const application = await commandApp(fs.basePath)
    const { app, engine } = application
    cleanup(() => app.terminate())
    const ref = engine.register('selection.moves', '1', (ctx) => ctx.waitForSignal('go'))
    const other = engine.register('selection.other', '1', (ctx) => ctx.waitForSignal('other'))
    await engine.start(ref, undefined, { runId: 'moves', tags: ['x'] })
    await engine.start(other, undefined, { runId: 'stays', tags: ['x'] })
    await work(application)
    await engine.start(ref, undefined, { runId: 'new', tags: ['x'] })

    const met: string[] = []
    const statuses = ['pending', 'suspended'] as const
    for await (const page of selectedPages(engine, { kind: 'filter', statuses, tag: 'x' })) {
      met.push(...page.map(({ id }) => id))
      // It was suspended when the pending ones were read, and is over when the suspended ones are.
      if (met.length === 1) await work(application)
    }
    assert.deepEqual(met.toSorted(), ['moves', 'new', 'stays'])
  })
})

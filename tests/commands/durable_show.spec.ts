import { test } from '@japa/runner'
import DurableShow from '../../commands/durable_show.ts'
import { claimKey } from '../../src/core/name.ts'
import { internalsOf } from '../../src/engine/engine.ts'
import { FatalError } from '../../src/errors.ts'
import { DurableWorker } from '../../src/worker/worker.ts'
import { commandApp, work } from './command_app.ts'

test.group('durable:show', () => {
  test('shows a run, its history and what it waits for', async ({ assert, fs, cleanup }) => {
    const application = await commandApp(fs.basePath)
    const { app, ace, engine, printed } = application
    cleanup(() => app.terminate())
    const ref = engine.register('commands.show', '2', async (ctx, input: { line: number }) => {
      await ctx.localStep('read', () => input.line)
      await ctx.waitForSignal('approved')
    })
    await engine.start(ref, { line: 7 }, 'shown')
    await work(application)

    const command = await ace.create(DurableShow, ['shown'])
    await command.exec()
    command.assertSucceeded()
    assert.match(printed(), /workflow +commands\.show, version 2/)
    assert.match(printed(), /status +suspended/)
    assert.match(printed(), /input +\{"line":7\}/)
    assert.match(printed(), /0\|local_step\|read\|completed\|1\|/)
    assert.match(printed(), /1\|signal\|signal "approved"\|/)
  })

  test('shows why a run has failed, with details and causes', async ({ assert, fs, cleanup }) => {
    const application = await commandApp(fs.basePath)
    const { app, ace, engine, printed } = application
    cleanup(() => app.terminate())
    const invalid = () => new FatalError('two fields', 'invalid_line', [{ field: 'iata' }])
    const ref = engine.register('commands.show_failed', '1', async (ctx) => {
      await ctx.localStep('check', () => Promise.reject(invalid())).catch(() => {})
      throw Object.assign(invalid(), { cause: new Error('the file is old') })
    })
    await engine.start(ref, undefined, 'shown')
    await work(application)

    const command = await ace.create(DurableShow, ['shown'])
    await command.exec()
    assert.match(printed(), /^error +invalid_line: two fields$/m)
    assert.match(printed(), /^details +\[\n +\{\n +"field": "iata"\n +\}\n +\]$/m)
    assert.match(printed(), /^cause +Error: the file is old$/m)
    assert.match(printed(), /^stack +FatalError: two fields\n +at /m)
    assert.match(printed(), /0\|local_step\|check\|failed\|1\|\|invalid_line: two fields\|/)
  })

  test('says how many children have ended how, and lists them with --children', async ({
    assert,
    fs,
    cleanup,
  }) => {
    const application = await commandApp(fs.basePath)
    const { app, ace, engine, printed } = application
    cleanup(() => app.terminate())
    const line = engine.register('commands.show_line', '1', async (ctx, input: number) => {
      if (input === 0) throw new FatalError('empty', 'invalid_line')
      if (input === 2) await ctx.waitForSignal('approved')
    })
    const file = engine.register('commands.show_file', '1', async (ctx) => {
      await ctx.allSettled(line, [0, 1])
      await ctx.allSettled(line, [0, 1, 2, 2])
    })
    await engine.start(file, undefined, 'shown')
    await work(application)

    const plain = await ace.create(DurableShow, ['shown'])
    await plain.exec()
    assert.match(printed(), /0\|all_settled\|.*\|1 completed, 1 failed\|/)
    assert.match(
      printed(),
      /children: 2 of 4 started have ended \(2 suspended, 1 completed, 1 failed\)/
    )
    assert.notInclude(printed(), 'shown.child.1.3')

    ace.ui.logger.flushLogs()
    const listing = await ace.create(DurableShow, ['shown', '--children'])
    await listing.exec()
    const listed = printed().match(/shown\.child\.\d\.\d/g)
    assert.deepEqual(listed, [
      'shown.child.0.0',
      'shown.child.0.1',
      'shown.child.1.0',
      'shown.child.1.1',
      'shown.child.1.2',
      'shown.child.1.3',
    ])
    assert.match(printed(), /1\|0\|shown\.child\.1\.0\|.*\|failed\|invalid_line/)
  })

  test('--json prints the run, its history and its waits', async ({ assert, fs, cleanup }) => {
    const application = await commandApp(fs.basePath)
    const { app, ace, engine, printed } = application
    cleanup(() => app.terminate())
    const ref = engine.register('commands.show_json', '1', async (ctx) =>
      ctx.localStep('answer', () => 42)
    )
    await engine.start(ref, undefined, 'shown')
    await work(application)

    const command = await ace.create(DurableShow, ['shown', '--json'])
    await command.exec()
    const { run, history, waits } = JSON.parse(printed())
    assert.containSubset(run, { id: 'shown', status: 'completed', output: 42 })
    assert.lengthOf(history, 1)
    assert.containSubset(history[0], { seq: 0, kind: 'local_step', name: 'answer' })
    assert.equal(history[0].output, 42)
    assert.isEmpty(waits)
  })

  test('--json leaves nothing out', async ({ assert, fs, cleanup }) => {
    const application = await commandApp(fs.basePath)
    const { app, ace, engine, printed } = application
    cleanup(() => app.terminate())
    const line = engine.register('commands.json_line', '1', async (_, input: number) => {
      if (input === 0) throw new FatalError('empty', 'invalid_line', { big: 7n })
      return input
    })
    const file = engine.register('commands.json_file', '1', (ctx) => ctx.all(line, [0, 1]))
    await engine.start(file, undefined, 'shown')
    await work(application)

    const command = await ace.create(DurableShow, ['shown', '--json', '--children'])
    await command.exec()
    const { run, history, childCounts, children } = JSON.parse(printed())
    const error = { code: 'invalid_line', message: 'empty', details: { big: '7n' } }
    assert.containSubset(run.error, error)
    assert.containSubset(history[0], { kind: 'all', status: 'failed', error })
    assert.deepEqual(childCounts, [
      { seq: 0, started: 2, ended: 2, statuses: { failed: 1, completed: 1 } },
    ])
    assert.containSubset(children[1], { id: 'shown.child.0.1', status: 'completed' })
  })

  test('says that no live worker serves a run, while that is so', async ({
    assert,
    fs,
    cleanup,
  }) => {
    const { app, ace, engine, printed } = await commandApp(fs.basePath)
    cleanup(() => app.terminate())
    const ref = engine.register('commands.waiting', '3', (ctx) => ctx.waitForSignal('go'))
    await engine.start(ref, null, 'shown')
    const show = async () => {
      const command = await ace.create(DurableShow, ['shown'])
      await command.exec()
    }
    const unserved =
      /^served by +no live worker that knows workflow "commands\.waiting" version "3" in namespace "default"$/gm
    await show()
    const worker = new DurableWorker({ engine })
    await worker.start()
    await show()
    await worker.stop()
    assert.lengthOf(printed().match(unserved) ?? [], 1)
    await show()
    assert.lengthOf(printed().match(unserved) ?? [], 2)
  })

  /** A run that a worker has claimed which announces itself so. */
  async function executing(basePath: string, announced: { name: string; descriptor: object }) {
    const { app, ace, engine, printed } = await commandApp(basePath)
    const ref = engine.register('commands.executing', '1', (ctx) => ctx.waitForSignal('go'))
    await engine.start(ref, null, 'shown')
    const store = await internalsOf(engine).store()
    const descriptor = JSON.stringify(announced.descriptor)
    const worker = { instance: 'instance', name: announced.name, leaseMs: 60_000, descriptor }
    await store.registerWorker({ ...worker, takeOver: false })
    const claimKeys = [claimKey('default', 'commands.executing', '1')]
    await store.claim({ owner: worker.instance, claimKeys, limit: 1 })
    const show = async () => {
      const command = await ace.create(DurableShow, ['shown'])
      await command.exec()
    }
    return { app, store, show, printed }
  }

  test('a run that is executing names its worker, though none is known to serve it', async ({
    assert,
    fs,
    cleanup,
  }) => {
    // As by another version of the package, which announces what it serves in a form of its own.
    const announced = { name: 'later:1', descriptor: {} }
    const { app, show, printed } = await executing(fs.basePath, announced)
    cleanup(() => app.terminate())
    await show()
    assert.match(printed(), /^status +running$/m)
    assert.match(printed(), /^worker +later:1$/m)
    assert.match(printed(), /^served by +no live worker/m)
  })

  test('a run that is executing names its worker, its process and host, while the worker is live', async ({
    assert,
    fs,
    cleanup,
  }) => {
    const descriptor = { claimKeys: [], concurrency: 1, pid: 4383, host: 'vm' }
    const { app, store, show, printed } = await executing(fs.basePath, { name: 'vm:1', descriptor })
    cleanup(() => app.terminate())
    await show()
    assert.match(printed(), /^worker +vm:1 \(pid 4383, host vm\)$/m)
    await store.advanceClock(60_001)
    await show()
    assert.match(printed(), /^worker +instance$/m)
  })

  test('of a run that has ended nothing is said of workers, nor asked', async ({
    assert,
    fs,
    cleanup,
  }) => {
    const application = await commandApp(fs.basePath)
    const { app, ace, engine, printed } = application
    cleanup(() => app.terminate())
    const ref = engine.register('commands.ended', '1', async () => 'done')
    await engine.start(ref, null, 'shown')
    await work(application)
    const store = await internalsOf(engine).store()
    store.listWorkers = () => Promise.reject(new Error('The workers were read'))

    const command = await ace.create(DurableShow, ['shown'])
    await command.exec()
    command.assertSucceeded()
    assert.match(printed(), /^status +completed$/m)
    assert.notMatch(printed(), /^(worker|served by) /m)
  })

  test('a run that does not exist ends with exit code 1', async ({ assert, fs, cleanup }) => {
    const { app, ace, printed } = await commandApp(fs.basePath)
    cleanup(() => app.terminate())
    const command = await ace.create(DurableShow, ['nobody'])
    await command.exec()
    assert.equal(command.exitCode, 1)
    assert.include(printed(), 'There is no run "nobody"')
  })

  test('shows compensations behind what they undo, and the phase', async ({
    assert,
    fs,
    cleanup,
  }) => {
    const application = await commandApp(fs.basePath)
    const { app, ace, engine, printed } = application
    cleanup(() => app.terminate())
    const ref = engine.register(
      'commands.show_saga',
      '1',
      async (ctx) => {
        await ctx.localStep('reserve', () => 1, { compensate: () => {} })
        await ctx.localStep('charge', () => 2, { compensate: () => Promise.reject(refused()) })
        throw new FatalError('no stock', 'no_stock')
      },
      { executionTimeout: '1 hour' }
    )
    const refused = () => new FatalError('refused', 'refund_refused')
    await engine.start(ref, undefined, 'saga')
    await work(application)

    const command = await ace.create(DurableShow, ['saga'])
    await command.exec()
    const text = printed()
    assert.match(text, /^phase +unwound: it has undone its steps$/m)
    assert.match(text, /^deadline +\d{4}-/m)
    assert.match(text, /undoes 0\|compensation\|reserve\|completed\|1\|/)
    assert.match(text, /undoes 1\|compensation\|charge\|failed\|1\|\|refund_refused: refused\|/)
    assert.isBelow(text.indexOf('1|local_step|charge'), text.indexOf('undoes 0|'))
  })

  test('shows a run and its handlers linked both ways, retried handoffs as such (OE-7, OE-30)', async ({
    assert,
    fs,
    cleanup,
  }) => {
    const application = await commandApp(fs.basePath)
    const { app, ace, engine, printed } = application
    cleanup(() => app.terminate())
    const handler = engine.register('commands.show_handler', '1', async (ctx) => {
      if (ctx.runId.endsWith('.0')) throw new FatalError('not known', 'unknown_line')
      await ctx.waitForSignal('looked-at')
    })
    const line = engine.register(
      'commands.show_routed',
      '1',
      async () => {
        throw new FatalError('two fields', 'invalid_line')
      },
      { onError: [{ code: 'invalid_line', workflow: handler }] }
    )
    await engine.start(line, undefined, 'line')
    await work(application)
    await engine.requeue('line')
    await work(application)
    const show = async (...argv: string[]) => {
      ace.ui.logger.flushLogs()
      const command = await ace.create(DurableShow, argv)
      await command.exec()
      return printed()
    }

    const text = await show('line')
    assert.match(text, /^phase +following its handler$/m)
    assert.match(text, /^tags +onError:invalid_line$/m)
    assert.match(
      text,
      /^handled by +line\.onError\.0 \(commands\.show_handler\): failed, unknown_line; retried since$/m
    )
    assert.match(text, /^handled by +line\.onError\.1 \(commands\.show_handler\): suspended$/m)
    assert.match(text, /handoff 0 \(retired\)\|handoff\|onError:retried:line\.onError\.0\|failed\|/)
    assert.match(text, /handoff 1\|handoff\|its handler run line\.onError\.1\|/)
    const handler1 = await show('line.onError.1')
    assert.match(handler1, /^handles +the failure of line$/m)
    assert.match(handler1, /^parent +line, handoff 1$/m)
    const started = await show('line', '--children')
    assert.match(started, /^handoff 1\|0\|line\.onError\.1\|/m)

    const { run, handlers } = JSON.parse(await show('line', '--json'))
    assert.equal(run.phase, 'following')
    assert.deepEqual(
      handlers.map(({ runId, isRetired }: { runId: string; isRetired: boolean }) => [
        runId,
        isRetired,
      ]),
      [
        ['line.onError.0', true],
        ['line.onError.1', false],
      ]
    )
  })
})

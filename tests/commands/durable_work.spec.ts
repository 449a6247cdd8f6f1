import type { LoggerService } from '@adonisjs/core/types'
import { test } from '@japa/runner'
import type { TestContext } from '@japa/runner/core'
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import DurableWork from '../../commands/durable_work.ts'
import { DurableWorker } from '../../src/worker/worker.ts'
import type { AceCase } from './ace_process.ts'
import { commandApp } from './command_app.ts'

/** The messages that are logged from now on, in order. */
function linesOf(logger: LoggerService): string[] {
  const lines: string[] = []
  const keep = (facts: unknown, message?: string) => lines.push(message ?? String(facts))
  for (const level of ['info', 'warn', 'error'] as const) logger[level] = keep
  return lines
}

test.group('durable:work', () => {
  test('--stop-when-idle runs what is due and ends', async ({ assert, fs, cleanup }) => {
    const { app, ace, engine } = await commandApp(fs.basePath)
    cleanup(() => app.terminate())
    const results: unknown[] = []
    const ref = engine.register('work.echo', '1', (ctx, input: number) =>
      ctx.localStep('echo', () => results.push(input))
    )
    for (const input of [1, 2, 3]) await engine.start(ref, input)

    const command = await ace.create(DurableWork, ['--stop-when-idle', '--concurrency=2'])
    await command.exec()
    command.assertSucceeded()
    assert.sameMembers(results, [1, 2, 3])
    assert.isTrue(app.isTerminated)
  })

  test('logs a line per run started, completed and failed', async ({ assert, fs, cleanup }) => {
    const { app, ace, engine } = await commandApp(fs.basePath)
    cleanup(() => app.terminate())
    const fine = engine.register('work.fine', '1', async () => {})
    const broken = engine.register('work.broken', '1', async () => {
      throw new Error('out of stock')
    })
    await engine.start(fine, undefined, 'a')
    await engine.start(broken, undefined, 'b')
    const logger = await app.container.make('logger')
    const lines = linesOf(logger)
    const command = await ace.create(DurableWork, ['--stop-when-idle'])
    await command.exec()
    assert.includeMembers(lines, [
      'run started: work.fine a',
      'run completed: work.fine a',
      'run started: work.broken b',
      'run failed: work.broken b: Error: out of stock',
    ])
    assert.equal(lines.at(-1), 'since the start: 2 started, 1 completed, 1 failed')
  })

  test('--quiet leaves out the runs that go well', async ({ assert, fs, cleanup }) => {
    const { app, ace, engine } = await commandApp(fs.basePath)
    cleanup(() => app.terminate())
    const fine = engine.register('work.quiet', '1', async () => {})
    const broken = engine.register('work.broken', '1', async () => {
      throw new Error('out of stock')
    })
    await engine.start(fine, undefined)
    await engine.start(broken, undefined, 'b')
    const lines = linesOf(await app.container.make('logger'))
    const command = await ace.create(DurableWork, ['--stop-when-idle', '--quiet', '--name=w1'])
    await command.exec()
    assert.match(lines[0] ?? '', /^durable worker "w1"/)
    assert.deepEqual(lines.slice(1), [
      'run failed: work.broken b: Error: out of stock',
      'since the start: 2 started, 1 completed, 1 failed',
    ])
  })

  test('says at its start what it is, and that it waits', async ({ assert, fs, cleanup }) => {
    const { app, ace, engine } = await commandApp(fs.basePath)
    cleanup(() => app.terminate())
    for (const version of ['1', '2']) engine.register('work.told', version, async () => {})
    const lines = linesOf(await app.container.make('logger'))
    const command = await ace.create(DurableWork, ['--name=w1', '--concurrency=3'])
    await command.exec()
    assert.deepEqual(lines, [
      `durable worker "w1" (pid ${process.pid}), store: memory, which ends with this process, up to 3 runs at once, ` +
        '2 workflows: work.told@1, work.told@2',
      'waiting: no run is due',
    ])
  })

  test('says in how long it has something to do', async ({ assert, fs, cleanup }) => {
    const { app, ace, engine } = await commandApp(fs.basePath)
    cleanup(() => app.terminate())
    const ref = engine.register('work.sleeps', '1', (ctx) => ctx.sleep('1 hour'))
    await engine.start(ref, undefined)
    const worker = new DurableWorker({ engine })
    await worker.start()
    await worker.whenIdle()
    await worker.stop()
    const lines = linesOf(await app.container.make('logger'))
    const command = await ace.create(DurableWork, [])
    await command.exec()
    assert.match(lines.at(-1) ?? '', /^waiting: the next run is due in 3\d{3} s$/)
  })

  test('warns when no workflow was found, with where it looked', async ({
    assert,
    fs,
    cleanup,
  }) => {
    for (const [given, shown] of [
      [null, 'app/workflows'],
      ['app/flows', 'app/flows'],
    ] as const) {
      const { app, ace } = await commandApp(fs.basePath, { workflowsPath: given })
      cleanup(() => app.terminate())
      const lines = linesOf(await app.container.make('logger'))
      const command = await ace.create(DurableWork, ['--stop-when-idle'])
      await command.exec()
      assert.match(lines[0] ?? '', /, 0 workflows$/)
      assert.include(lines[1], 'No workflow was found')
      assert.include(lines[1], `from files of ${shown} ("workflowsPath")`)
    }
  })

  test('commits the router, so that steps can build URLs', async ({ assert, fs, cleanup }) => {
    const { app, ace, engine } = await commandApp(fs.basePath)
    cleanup(() => app.terminate())
    const router = await app.container.make('router')
    router.get('/orders/:id', () => {}).as('orders.show')
    // Its type knows only the routes of an application whose types were generated.
    const urlFor = () => Reflect.apply(router.urlBuilder.urlFor, undefined, ['orders.show', [7]])
    const urls: string[] = []
    const ref = engine.register('work.url', '1', (ctx) =>
      ctx.localStep('url', () => urls.push(urlFor()))
    )
    await engine.start(ref, undefined)
    const command = await ace.create(DurableWork, ['--stop-when-idle'])
    await command.exec()
    assert.deepEqual(urls, ['/orders/7'])
  })

  for (const { flag, problem } of [
    { flag: '--concurrency=0', problem: 'got 0, expected a whole number of runs, at least 1' },
    {
      flag: '--name=w 1',
      problem: 'got "w 1", expected a name of 1 to 200 characters without white space',
    },
  ]) {
    test(`refuses ${flag}, as the configuration does`, async ({ assert, fs, cleanup }) => {
      const { app, ace, printed } = await commandApp(fs.basePath)
      cleanup(() => app.terminate())
      const command = await ace.create(DurableWork, [flag, '--stop-when-idle'])
      await command.exec()
      command.assertFailed()
      assert.include(printed(), `Invalid ${flag.split('=')[0]}: ${problem}`)
    })
  }

  test('a name that a live worker has ends it with what to do', async ({ assert, fs, cleanup }) => {
    const { app, ace, engine, printed } = await commandApp(fs.basePath)
    cleanup(() => app.terminate())
    const worker = new DurableWorker({ engine, name: 'w1' })
    await worker.start()
    cleanup(() => worker.stop())
    const command = await ace.create(DurableWork, ['--name=w1'])
    await command.exec()
    assert.equal(command.exitCode, 1)
    assert.match(printed(), /^.*A live worker is named "w1" already.*--name.*$/)
    assert.isTrue(app.isTerminated)
  })

  test('a workflow file that throws ends it with the name of the file', async ({
    assert,
    fs,
    cleanup,
  }) => {
    await fs.create('app/workflows/broken_for_work.ts', 'throw new Error("no tariff")')
    const { app, ace, printed } = await commandApp(fs.basePath)
    cleanup(() => app.terminate())
    const command = await ace.create(DurableWork, ['--stop-when-idle'])
    await command.exec()
    command.assertFailed()
    assert.match(printed(), /^.*Cannot load .*broken_for_work\.ts: no tariff.*$/)
    assert.isTrue(app.isTerminated)
  })
})

test.group('durable:work | process', () => {
  /** The process, and its lines of output as they come. */
  function start(basePath: string, params: { flags?: string[]; drainMs?: number } = {}) {
    const file = fileURLToPath(new URL('work_process.ts', import.meta.url))
    const args = ['--import=@poppinss/ts-exec', file, basePath, ...(params.flags ?? [])]
    const child = spawn(process.execPath, args, {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: {
        ...process.env,
        ...(params.drainMs !== undefined && { DRAIN_MS: String(params.drainMs) }),
      },
    })
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
    return { child, lines }
  }

  async function nextLine(lines: AsyncIterator<string>, wanted: string): Promise<void> {
    for (;;) {
      const { value, done } = await lines.next()
      if (done) throw new Error(`The process ended without "${wanted}"`)
      if (value === wanted) return
    }
  }

  async function exitOf(child: ChildProcess): Promise<unknown[]> {
    if (child.exitCode !== null) return [child.exitCode, null]
    return once(child, 'exit')
  }

  for (const { signal, code } of [
    { signal: 'SIGINT', code: 130 },
    { signal: 'SIGTERM', code: 143 },
  ] as const) {
    test(`${signal} drains, and a second one exits at once`, async ({ assert, fs, cleanup }) => {
      const { child, lines } = start(fs.basePath)
      cleanup(() => void child.kill('SIGKILL'))
      await nextLine(lines, 'stuck')
      child.kill(signal)
      await nextLine(lines, 'terminating')
      child.kill(signal)
      assert.deepEqual(await exitOf(child), [code, null])
    })
  }

  test('a drain that is over ends the process with exit code 0', async ({
    assert,
    fs,
    cleanup,
  }) => {
    const { child, lines } = start(fs.basePath, { drainMs: 50 })
    cleanup(() => void child.kill('SIGKILL'))
    await nextLine(lines, 'stuck')
    child.kill('SIGINT')
    assert.deepEqual(await exitOf(child), [0, null])
  })

  test('--json prints one object per event', async ({ assert, fs, cleanup }) => {
    const { child, lines } = start(fs.basePath, { flags: ['--json'] })
    cleanup(() => void child.kill('SIGKILL'))
    const started = await lines.next()
    assert.containSubset(JSON.parse(started.value ?? ''), {
      event: 'worker.started',
      workflows: ['work_process.stuck@1'],
      concurrency: 50,
    })
    const { value } = await lines.next()
    assert.deepEqual(JSON.parse(value ?? ''), {
      event: 'run.started',
      runId: 'stuck',
      workflow: 'work_process.stuck',
      version: '1',
      namespace: 'default',
    })
  })
})

test.group('durable:work | ace', () => {
  /** Runs it as "node ace" does, until it ends. */
  async function end(
    { fs, cleanup }: Pick<TestContext, 'fs' | 'cleanup'>,
    aceCase: AceCase,
    flags: string[] = []
  ) {
    const file = fileURLToPath(new URL('ace_process.ts', import.meta.url))
    const args = ['--import=@poppinss/ts-exec', file, fs.basePath, aceCase, ...flags]
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] })
    cleanup(() => void child.kill('SIGKILL'))
    let output = ''
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk) => (output += String(chunk)))
    const [exitCode] = await once(child, 'close')
    return { exitCode, output }
  }

  for (const { aceCase, problem } of [
    { aceCase: 'duplicate route', problem: /A route with name "same" already exists/g },
    { aceCase: 'config of no defineConfig()', problem: /expected the result of defineConfig/g },
  ] as const)
    test(`ends with exit code 1 and says why once: ${aceCase}`, async ({ assert, fs, cleanup }) => {
      const { exitCode, output } = await end({ fs, cleanup }, aceCase, ['--stop-when-idle'])
      assert.equal(exitCode, 1, output)
      assert.lengthOf(output.match(problem) ?? [], 1, output)
    })

  test('--stop-when-idle ends with exit code 0 after a signal, though something is due', async ({
    assert,
    fs,
    cleanup,
  }) => {
    const flags = ['--stop-when-idle']
    const { exitCode, output } = await end({ fs, cleanup }, 'SIGTERM in a step', flags)
    assert.deepEqual([exitCode, output], [0, ''])
  })

  test('ends with exit code 0 after a signal that came before the application was ready', async ({
    assert,
    fs,
    cleanup,
  }) => {
    const { exitCode, output } = await end({ fs, cleanup }, 'SIGTERM before it is ready')
    assert.deepEqual([exitCode, output], [0, ''])
  })
})

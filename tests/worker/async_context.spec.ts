import { AsyncLocalStorage } from 'node:async_hooks'
import { test } from '@japa/runner'
import { currentScope } from '../../src/engine/scope.ts'
import { MemoryDatabase } from '../../src/stores/memory/memory_database.ts'
import { MemoryStore } from '../../src/stores/memory/memory_store.ts'
import { DurableApp } from '../support/durable_app.ts'
import { until } from '../support/until.ts'

test.group('The asynchronous context of what a process shares', (group) => {
  let request: AsyncLocalStorage<string>
  group.each.setup(() => {
    request = new AsyncLocalStorage()
  })

  /** An application in which the steps of `sees` tell which request they belong to, after `wait`. */
  async function working(wait: 'nothing' | 'signal' | 'sleep') {
    const app = new DurableApp()
    const workflow = app.engine.register('sees', '1', async (ctx) => {
      if (wait === 'signal') await ctx.waitForSignal('go')
      if (wait === 'sleep') await ctx.sleep('1 h')
      return ctx.localStep('look', () => request.getStore() ?? 'nobody')
    })
    await app.work()
    return { app, engine: app.engine, workflow }
  }

  test('a step of a run that a request starts beside its worker does not see the request', async ({
    assert,
  }) => {
    const { app, engine, workflow } = await working('nothing')
    const handle = await request.run('of Alice', () => engine.start(workflow, undefined))
    assert.equal(await handle.result(), 'nobody')
    await app.close()
  })

  test('a step of a run that the signal of a request wakes does not see the request', async ({
    assert,
  }) => {
    const { app, engine, workflow } = await working('signal')
    const handle = await engine.start(workflow, undefined)
    await request.run('of Alice', () => engine.signal('go'))
    assert.equal(await handle.result(), 'nobody')
    await app.close()
  })

  test('a step of a run that becomes due does not see the request that had the worker look for it', async ({
    assert,
  }) => {
    const { app, engine, workflow } = await working('sleep')
    const handle = await engine.start(workflow, undefined, 'r')
    await until(async () => {
      const run = await engine.getRun('r')
      return run?.status === 'suspended'
    })
    await request.run('of Alice', () => engine.advanceClock(3_600_000))
    assert.equal(await handle.result(), 'nobody')
    await app.close()
  })

  test('a listener hears of a run in no scope, though a step of another has started or signalled it', async ({
    assert,
  }) => {
    const { app, engine, workflow } = await working('signal')
    const heard: unknown[] = []
    for (const name of ['run.started', 'run.completed'] as const)
      engine.on(name, (event) => {
        if (event.workflow === 'sees') heard.push([name, currentScope()?.kind])
      })
    const starter = engine.register('starter', '1', async (ctx) => {
      await ctx.localStep('start', async () => void (await engine.start(workflow, undefined, 'r')))
      await ctx.localStep('signal', async () => void (await engine.signal('go')))
    })
    const handle = await engine.start(starter, undefined)
    await handle.result()
    await engine.waitForRun('r')
    assert.deepEqual(heard, [
      ['run.started', undefined],
      ['run.completed', undefined],
    ])
    await app.close()
  })

  test('the store is asked about runs that are waited for, and gets writes, in the context of none of the callers', async ({
    assert,
  }) => {
    const seen = new Set<unknown>()
    class Watched extends MemoryStore {
      override commit(...args: Parameters<MemoryStore['commit']>) {
        seen.add(request.getStore())
        return super.commit(...args)
      }
      override statusesOf(...args: Parameters<MemoryStore['statusesOf']>) {
        seen.add(request.getStore())
        return super.statusesOf(...args)
      }
    }
    const app = new DurableApp({ store: new Watched(new MemoryDatabase()) })
    const workflow = app.engine.register('waits', '1', (ctx) => ctx.waitForSignal('go'))
    await request.run('of Alice', async () => {
      await app.engine.start(workflow, undefined, 'r')
      await assert.rejects(() => app.engine.waitForRun('r', { timeoutMs: 50 }))
    })
    assert.deepEqual([...seen], [undefined])
    await app.close()
  })
})

import { test } from '@japa/runner'
import type { WorkflowEngine } from '../../src/engine/engine.ts'
import { FatalError } from '../../src/errors.ts'
import { Stage } from '../support/stage.ts'
import { KINDS, onEach } from '../stores/databases.ts'

const MAIN = { name: 'main', version: '1' }

/** A body that fails with the codes given, one execution each, and then completes; its handler fails. */
function registerMain(engine: WorkflowEngine, codes: string[]) {
  const kept = { executed: 0 }
  engine.register(
    'main',
    '1',
    async (ctx) => {
      await ctx.localStep('kept', () => ++kept.executed)
      return ctx.localStep('checked', () => {
        const code = codes.shift()
        if (code === undefined) return 'fine'
        throw new FatalError('refused', code)
      })
    },
    { onError: [{ code: 'first', workflow: 'handler' }, { workflow: 'handler' }] }
  )
  engine.register('handler', '1', async (_, failure: { error: { code: string } }) => {
    throw new FatalError(`no help for ${failure.error.code}`, 'no_help')
  })
  return kept
}

onEach(KINDS, (kind) =>
  test.group(`Failure routes | retrying (${kind})`, (group) => {
    let stage: Stage
    group.each.setup(async () => {
      stage = await Stage.on(kind)
      return () => stage.close()
    })

    async function handoffsOf(runId: string) {
      const history = await stage.store.getHistory(runId)
      return history?.records
        .filter(({ kind: operation }) => operation === 'handoff')
        .map(({ name, generation }) => [name, generation > 0 ? 'retired' : 'live'])
        .sort()
    }

    test('OE-30: a retry runs the body again, retires the handoff by another name, and takes its tag away', async ({
      assert,
    }) => {
      const app = await stage.app()
      const { engine } = app
      const kept = registerMain(engine, ['first'])
      await app.work()
      await engine.start(MAIN, null, 'r', { tags: ['mine'] })
      const failed = await engine.waitForRun('r')
      assert.deepEqual([failed.status, failed.errorCode], ['failed', 'no_help'])
      assert.sameMembers(failed.tags, ['mine', 'onError:first'])
      assert.deepEqual(await handoffsOf('r'), [['onError:r.onError.0', 'live']])

      assert.isTrue(await engine.requeue('r'))
      const run = await engine.waitForRun('r')
      assert.deepEqual([run.status, run.output, run.phase], ['completed', 'fine', 'body'])
      assert.deepEqual(run.tags, ['mine'])
      assert.deepEqual(await handoffsOf('r'), [['onError:retried:r.onError.0', 'retired']])
      assert.equal(kept.executed, 1)
      assert.isNull(await engine.getRun('r.onError.1'))
    })

    test('OE-31: each further failure goes to a further handler run, and is tagged by its own code', async ({
      assert,
    }) => {
      const app = await stage.app()
      const { engine } = app
      registerMain(engine, ['first', 'second', 'first'])
      await app.work()
      await engine.start(MAIN, null, 'r')
      for (const [index, tag] of ['onError:first', 'onError:*', 'onError:first'].entries()) {
        if (index > 0) assert.isTrue(await engine.requeue('r'))
        const run = await engine.waitForRun('r')
        assert.equal(run.status, 'failed')
        assert.deepEqual(run.tags, [tag])
        const handler = await engine.getRun(`r.onError.${index}`)
        assert.equal(handler?.errorCode, 'no_help')
      }
      assert.deepEqual(await handoffsOf('r'), [
        ['onError:r.onError.2', 'live'],
        ['onError:retried:r.onError.0', 'retired'],
        ['onError:retried:r.onError.1', 'retired'],
      ])
    })

    test('OE-30: a retired handoff is not followed, whatever becomes of its handler run', async ({
      assert,
    }) => {
      const app = await stage.app()
      const { engine } = app
      registerMain(engine, ['first'])
      await app.work()
      await engine.start(MAIN, null, 'r')
      await engine.waitForRun('r')
      await engine.requeue('r')
      await engine.waitForRun('r')
      await engine.requeue('r.onError.0')
      const handler = await engine.waitForRun('r.onError.0')
      assert.equal(handler.status, 'failed')
      const run = await engine.getRun('r')
      assert.deepEqual([run?.status, run?.output], ['completed', 'fine'])
    })
  })
)

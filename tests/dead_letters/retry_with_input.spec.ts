import { test } from '@japa/runner'
import { KINDS, onEach } from '../stores/databases.ts'
import { Stage } from '../support/stage.ts'

onEach(KINDS, (kind) =>
  test.group(`Replaying with other input (${kind})`, (group) => {
    let stage: Stage
    group.each.setup(async () => {
      stage = await Stage.on(kind)
      return () => stage.close()
    })

    /** A dead run `r` of namespace `eu`. */
    async function dead() {
      const app = await stage.app({ namespaces: ['eu'] })
      const { engine } = app
      const lines = engine.register('lines', '1', (ctx, input: { lines: number }) =>
        ctx.localStep('count', () => input.lines)
      )
      await engine.start(lines, { lines: -1 }, { runId: 'r', namespace: 'eu', tags: ['import'] })
      await stage.loseBeyondCap('lines', 'eu')
      await app.work()
      const run = await engine.waitForRun('r')
      return { engine, run }
    }

    test('DL-50, DL-51: a new run of the same workflow with clean history, the tags and the namespace; the original stays as it is', async ({
      assert,
    }) => {
      const { engine, run } = await dead()
      assert.equal(run.status, 'dead')
      const retried = await engine.retryWithInput('r', { lines: 12 })
      assert.deepEqual(Object.keys(retried ?? {}), ['runId'])
      assert.match(retried?.runId ?? '', /^r~retry~[0-9a-f]{8}$/)
      const next = await engine.waitForRun(retried?.runId ?? '')
      assert.equal(next.status, 'completed')
      assert.equal(next.output, 12)
      assert.equal(next.workflow, 'lines')
      assert.equal(next.namespace, 'eu')
      assert.deepEqual(next.tags, ['import'])
      assert.equal(next.recoveryAttempts, 0)
      const history = await engine.getHistory(next.id)
      assert.deepEqual(
        history?.records.map(({ name, generation }) => [name, generation]),
        [['count', 0]]
      )
      assert.deepEqual(await engine.getRun('r'), run)
    })

    test('DL-50: a run whose id is as long as an id may be is retried, too', async ({ assert }) => {
      const { engine } = await dead()
      const long = 'x'.repeat(200)
      await engine.start({ name: 'lines', version: '1' }, { lines: 1 }, long)
      const retried = await engine.retryWithInput(long, { lines: 2 })
      assert.match(retried?.runId ?? '', /^x{185}~retry~[0-9a-f]{8}$/)
    })

    test('DL-50: each call starts another run; a given id is taken', async ({ assert }) => {
      const { engine } = await dead()
      const first = await engine.retryWithInput('r', { lines: 1 })
      const second = await engine.retryWithInput('r', { lines: 1 })
      assert.notEqual(first?.runId, second?.runId)
      assert.deepEqual(await engine.retryWithInput('r', { lines: 4 }, 'r2'), { runId: 'r2' })
      const run = await engine.waitForRun('r2')
      assert.equal(run.output, 4)
    })

    test('DL-51: null when there is no such run', async ({ assert }) => {
      const { engine } = await dead()
      assert.isNull(await engine.retryWithInput('unknown', {}))
    })
  })
)

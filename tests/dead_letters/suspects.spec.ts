import { test } from '@japa/runner'
import { claimKey } from '../../src/core/name.ts'
import { describeWorker } from '../../src/worker/worker_description.ts'
import { KINDS, onEach } from '../stores/databases.ts'
import { Stage } from '../support/stage.ts'

onEach(KINDS, (kind) =>
  test.group(`What a worker says of lost runs (${kind})`, (group) => {
    let stage: Stage
    group.each.setup(async () => {
      stage = await Stage.on(kind)
      return () => stage.close()
    })

    /** What was logged as a warning when the body of a run began that had been lost before. */
    async function warnedOf(losses: number): Promise<unknown[]> {
      const app = await stage.app()
      const warnings: unknown[] = []
      app.engine.register('videos.convert', '1', async () => {
        warnings.push(...app.log.lines.filter(({ level }) => level === 'warn').map((l) => l.args))
      })
      await app.engine.start('videos.convert', null, 'r')
      for (let loss = 0; loss < losses; loss++) await stage.dying.takeAndDie('videos.convert')
      await app.work()
      await app.engine.waitForRun('r')
      return warnings
    }

    test('a run that was lost twice is named before its body is resumed', async ({ assert }) => {
      assert.deepEqual(await warnedOf(2), [
        [
          { runId: 'r', workflow: 'videos.convert', recoveryAttempts: 2 },
          'videos.convert r was lost with its worker 2 times: it may be what ends them. It is executed with no other such run beside it',
        ],
      ])
    })

    test('one that was lost once is not', async ({ assert }) => {
      assert.deepEqual(await warnedOf(1), [])
    })

    test('it says what it is before it says what it took over', async ({ assert }) => {
      const app = await stage.app()
      app.engine.register('main', '1', async () => {})
      await app.engine.start('main', null, 'r')
      const earlier = { instance: 'earlier', name: 'w', leaseMs: 60_000, descriptor: '{}' }
      await stage.store.registerWorker({ ...earlier, takeOver: false })
      const claimKeys = [claimKey('default', 'main', '1')]
      await stage.store.claim({ owner: 'earlier', claimKeys, limit: 1 })
      await app.work({ name: 'w', onStarted: (worker) => app.log.info(describeWorker(worker)) })
      const lines = app.log.lines.map(({ args }) => String(args[0]))
      assert.match(lines[0]!, /^durable worker "w"/)
      assert.equal(lines[1], 'Took over 1 run of an earlier process named "w"')
    })
  })
)

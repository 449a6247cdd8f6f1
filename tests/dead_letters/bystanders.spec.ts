import { test } from '@japa/runner'
import { claimKey, suspectKey } from '../../src/core/name.ts'
import { rowOf } from '../support/run_row.ts'
import { KINDS, onEach } from '../stores/databases.ts'
import { CAP, Stage } from '../support/stage.ts'

onEach(KINDS, (kind) =>
  test.group(`Runs lost beside a suspect (${kind})`, (group) => {
    let stage: Stage
    group.each.setup(async () => {
      stage = await Stage.on(kind)
      return () => stage.close()
    })

    async function application() {
      const app = await stage.app()
      const { engine } = app
      engine.register('steady', '1', async (ctx) => {
        for (let word = ''; word !== 'stop';) word = await ctx.waitForSignal('word')
        return 'fine'
      })
      engine.register('poison', '1', async () => {})
      return app
    }

    test('DL-11: are not counted, and become suspects themselves', async ({ assert }) => {
      const { engine } = await application()
      await engine.start('poison', null, 'p')
      for (let kill = 0; kill < 2; kill++) await stage.dying.takeAndDie('poison')
      await engine.start('steady', null, 'h')
      await stage.dying.takeTogether(['poison', 'steady'])
      await stage.dying.findLost()
      const lost = await rowOf(engine, 'h')
      assert.equal(lost.status, 'suspended')
      assert.equal(lost.claimKey, suspectKey(claimKey('default', 'steady', '1')))
      assert.deepEqual(await engine.findStranded(), [])

      const [taken] = await stage.dying.take('steady')
      assert.equal(taken?.recoveryAttempts, 0)
      await stage.dying.findLost()
      const [again] = await stage.dying.take('steady')
      assert.equal(again?.recoveryAttempts, 1)
    })

    test('DL-11: a run that gets on between the kills of another one, and is beside it at each of them, is not dead with it', async ({
      assert,
    }) => {
      const app = await application()
      const { engine } = app
      await engine.start('poison', null, 'p')
      await engine.start('steady', null, 'h')
      for (let kill = 0; kill <= CAP; kill++) {
        const rows = await stage.dying.takeTogether(['poison', 'steady'])
        assert.lengthOf(rows, 2)
        await stage.dying.findLost()
        if (kill === CAP) break
        // It suspends, under another worker, and is woken.
        const other = await stage.app()
        other.engine.register('steady', '1', async (ctx) => {
          for (let word = ''; word !== 'stop';) word = await ctx.waitForSignal('word')
          return 'fine'
        })
        const worker = await other.work()
        await worker.whenIdle()
        await worker.stop()
        await engine.signal('word', 'go')
      }
      await app.work()
      const dead = await engine.waitForRun('p')
      assert.equal(dead.status, 'dead')
      await engine.signal('word', 'stop')
      const run = await engine.waitForRun('h')
      assert.equal(run.status, 'completed')
      assert.isBelow(run.recoveryAttempts, CAP)
      assert.deepEqual(await engine.findStranded(), [])
    })
  })
)

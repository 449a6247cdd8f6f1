import { test } from '@japa/runner'
import type { Store } from '../../src/contracts/store.ts'
import { CRASH_MOMENTS, type CrashPoint } from '../../src/testing/crash_store.ts'
import { eachWrite } from '../support/each_write.ts'
import { ForkedProcess } from '../support/forked_process.ts'
import { DurableApp } from '../support/durable_app.ts'
import { SQL_KINDS } from '../stores/databases.ts'
import { cleanUp } from '../support/clean_up.ts'
import { until } from '../support/until.ts'
import type { BurialOrder, BurialReport } from './burial_process.ts'
import { DyingProcesses } from '../support/dying_processes.ts'
import { registerPoison } from './poison_workflows.ts'
import { createDatabase, type ProcessDatabase } from '../support/process_database.ts'
import { CAP } from '../support/stage.ts'

const SCRIPT = new URL('./burial_process.ts', import.meta.url)
const OPTIONS = { maxRecoveryAttempts: CAP, pollMs: 20, idlePollMs: 50 }

for (const kind of SQL_KINDS)
  test.group(`The death of a run and its handler run are one write (${kind})`, (group) => {
    let database: ProcessDatabase
    let app: DurableApp
    let store: Store
    let dying: DyingProcesses
    group.each.setup(async () => {
      database = await createDatabase(kind)
      app = new DurableApp({ store: await database.store(), options: OPTIONS })
      registerPoison(app.engine)
      store = await database.store()
      dying = new DyingProcesses(store, { cap: CAP })
      return () =>
        cleanUp(
          () => app.close(),
          () => database.remove()
        )
    })

    /** A run whose next pickup is one too many. */
    async function atTheCap(runId: string): Promise<void> {
      await app.engine.start('poison', null, runId)
      for (let pickup = 0; pickup <= CAP; pickup++) await dying.takeAndDie('poison')
    }

    /** Resolves once the database has noticed that nobody is the gravedigger any more. */
    function nameIsFree(): Promise<void> {
      return until(async () => {
        const lock = await store.lockName('gravedigger')
        await lock?.release()
        return lock !== null
      })
    }

    /** A process that is killed at a point; null when it came to the end alive. */
    async function bury(runId: string, point: CrashPoint): Promise<BurialReport | null> {
      const order: BurialOrder = { address: database.address, runId, point }
      const process = new ForkedProcess<BurialReport>(SCRIPT, [JSON.stringify(order)])
      const report = await process.next()
      await process.kill()
      await nameIsFree()
      if (report || (process.killedBy === 'SIGKILL' && process.output === '')) return report
      throw new Error(`Ended by ${process.killedBy ?? process.exitCode}: ${process.output}`)
    }

    for (const moment of CRASH_MOMENTS)
      test(`DL-30: killed ${moment} each write around it, no dead run is without its handler run, and it has one in the end`, async ({
        assert,
      }) => {
        let deaths = 0
        const writes = await eachWrite(async ({ write, id }) => {
          const runId = `p${id}`
          await atTheCap(runId)
          const report = await bury(runId, { moment, write })
          const at = `${moment} write ${write}`
          const killed = await app.engine.getRun(runId)
          const handler = await app.engine.getRun(`dlq:${runId}`)
          assert.equal(killed?.status === 'dead', handler !== null, at)
          if (report === null && killed?.status === 'dead') deaths++

          const survivor = await app.work({ name: 'gravedigger' })
          const run = await app.engine.waitForRun(runId)
          const handled = await app.engine.waitForRun(`dlq:${runId}`)
          assert.equal(run.status, 'dead', at)
          assert.equal(handled.status, 'completed', at)
          const history = await app.engine.getHistory(handled.id)
          assert.lengthOf(history?.records ?? [], 1, at)
          assert.deepEqual(await app.engine.findStranded(), [], at)
          await survivor.stop()
          return report?.writes ?? null
        })
        console.log(`DL-30 ${kind}: killed ${moment} ${writes} writes, ${deaths} after the death`)
        assert.isAbove(deaths, 0)
      }).timeout(180_000)

    test('DL-30: every process killed at the write that would make it dead: the next one tries again', async ({
      assert,
    }) => {
      await atTheCap('p')
      // The writes of a process: its announcement, the claim of the run, its death.
      const point = { moment: 'before', write: 3 } as const
      for (let life = 1; life <= 3; life++) {
        assert.isNull(await bury('p', point))
        const run = await app.engine.getRun('p')
        assert.equal(run?.status, 'running')
        assert.equal(run?.recoveryAttempts, CAP + life)
        assert.isNull(await app.engine.getRun('dlq:p'))
        assert.deepEqual(await app.engine.findStranded(), [])
      }
      await app.work({ name: 'gravedigger' })
      const run = await app.engine.waitForRun('p')
      assert.equal(run.status, 'dead')
      const handled = await app.engine.waitForRun('dlq:p')
      assert.equal(handled.status, 'completed')
    }).timeout(60_000)
  })

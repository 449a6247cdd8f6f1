import { test } from '@japa/runner'
import { CRASH_MOMENTS, type CrashPoint } from '../../src/testing/crash_store.ts'
import { ForkedProcess } from '../crash/forked_process.ts'
import { DurableApp } from '../engine/durable_app.ts'
import { SQL_KINDS } from '../stores/databases.ts'
import type { BurialOrder, BurialReport } from './burial_process.ts'
import { DyingProcesses } from './lost_runs.ts'
import { registerPoison } from './poison_workflows.ts'
import { createDatabase, type ProcessDatabase } from './process_database.ts'
import { CAP } from './stage.ts'

const SCRIPT = new URL('./burial_process.ts', import.meta.url)
/** A claim may take what has become due since it was looked for: no process can be killed before that write. */
const MISSES = 20
const OPTIONS = { maxRecoveryAttempts: CAP, pollMs: 20, idlePollMs: 50 }

for (const kind of SQL_KINDS)
  test.group(`The death of a run and its handler run are one write (${kind})`, (group) => {
    let database: ProcessDatabase
    group.each.setup(async () => {
      database = await createDatabase(kind)
      return () => database.remove()
    })

    async function application(): Promise<DurableApp> {
      const app = new DurableApp({ store: await database.store(), options: OPTIONS })
      registerPoison(app.engine)
      return app
    }

    /** A run whose next pickup is one too many. */
    async function atTheCap(app: DurableApp, runId: string): Promise<void> {
      await app.engine.start('poison', null, runId)
      const dying = new DyingProcesses(await database.store(), { cap: CAP })
      for (let pickup = 0; pickup <= CAP; pickup++) await dying.takeAndDie('poison')
    }

    /** A process that is killed at a point; null when it came to the end alive. */
    async function bury(runId: string, point: CrashPoint): Promise<BurialReport | null> {
      const order: BurialOrder = { address: database.address, runId, point }
      const process = new ForkedProcess<BurialReport>(SCRIPT, [JSON.stringify(order)])
      const report = await process.next()
      await process.kill()
      if (report || (process.killedBy === 'SIGKILL' && process.output === '')) return report
      throw new Error(`Ended by ${process.killedBy ?? process.exitCode}: ${process.output}`)
    }

    for (const moment of CRASH_MOMENTS)
      test(`DL-30: killed ${moment} each write around it, no dead run is without its handler run, and it has one in the end`, async ({
        assert,
      }) => {
        const app = await application()
        let deaths = 0
        let misses = 0
        for (let write = 1; ;) {
          const runId = `p${write}.${misses}`
          await atTheCap(app, runId)
          const report = await bury(runId, { moment, write })
          const at = `${moment} write ${write}`
          const killed = await app.engine.getRun(runId)
          const handler = await app.engine.getRun(`dlq:${runId}`)
          assert.equal(killed?.status === 'dead', handler !== null, at)
          if (report === null && killed?.status === 'dead') deaths++

          const survivor = await application()
          await survivor.work({ name: 'gravedigger' })
          const run = await survivor.engine.waitForRun(runId)
          const handled = await survivor.engine.waitForRun(`dlq:${runId}`)
          assert.equal(run.status, 'dead', at)
          assert.equal(handled.status, 'completed', at)
          const history = await survivor.engine.getHistory(handled.id)
          assert.lengthOf(history?.records ?? [], 1, at)
          assert.deepEqual(await survivor.engine.findStranded(), [], at)
          await survivor.close()
          if (report === null) {
            misses = 0
            write++
          } else if (report.writes < write) {
            console.log(
              `DL-30 ${kind}: killed ${moment} ${write - 1} writes, ${deaths} of them after the death`
            )
            break
          } else assert.isBelow(++misses, MISSES, at)
        }
        assert.isAbove(deaths, 0)
        await app.close()
      }).timeout(180_000)

    test('DL-30: every process killed at the write that would make it dead: the next one tries again', async ({
      assert,
    }) => {
      const app = await application()
      await atTheCap(app, 'p')
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
      await app.close()
    }).timeout(60_000)
  })

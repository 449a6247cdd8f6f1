import { test } from '@japa/runner'
import { SQL_KINDS } from '../stores/databases.ts'
import { onlyWorker } from '../support/only_worker.ts'
import { HEALTHY, POISON } from './poison_workflows.ts'
import { Supervisor } from './supervisor.ts'
import { until } from '../support/until.ts'
import { internalsOf } from '../../src/engine/engine.ts'

const LEASE_MS = 1_500
const OPTIONS = { leaseMs: LEASE_MS, hangMs: 60_000, pollMs: 50, idlePollMs: 200 }
/** A lease that no test outlasts: whatever is taken up before was handed over. */
const LONG = { ...OPTIONS, leaseMs: 600_000, hangMs: 900_000 }

for (const kind of SQL_KINDS)
  test.group(`Processes that end with runs in flight (${kind})`, (group) => {
    let supervisor: Supervisor
    group.each.setup(async () => {
      supervisor = await Supervisor.on(kind)
      return () => supervisor.close()
    })

    const startHealthy = (workMs: number) =>
      supervisor.engine.start(HEALTHY, { workMs, sleepMs: 0 }, 'r')

    const isRunning = async () => {
      const run = await supervisor.engine.getRun('r')
      return run?.status === 'running'
    }

    async function assertNothingStranded(assert: { deepEqual(a: unknown, b: unknown): void }) {
      assert.deepEqual(await supervisor.engine.findStranded(), [])
    }

    test('DL-1: leases are renewed while a run executes, and another process picks the run up within about leaseMs of a SIGKILL, counted', async ({
      assert,
    }) => {
      const { engine } = supervisor
      for (const name of ['a', 'b']) await supervisor.start(name, { options: OPTIONS })
      await startHealthy(2 * LEASE_MS)
      await until(isRunning)
      const untilOf = async (instance: string | null | undefined) => {
        const workers = await engine.listWorkers()
        const worker = workers.find((one) => one.instance === instance)
        if (!worker) throw new Error('The owner of the run is no worker')
        return worker.until
      }
      const before = await engine.getRun('r')
      const first = await untilOf(before?.owner)
      await until(async () => (await untilOf(before?.owner)) > first)
      const workers = await engine.listWorkers()
      const owner = workers.find(({ instance }) => instance === before?.owner)
      await supervisor.kill(owner?.name ?? '')
      const killed = performance.now()
      await until(async () => {
        const run = await engine.getRun('r')
        return run?.owner !== before?.owner && run?.status === 'running'
      })
      assert.isBelow(performance.now() - killed, LEASE_MS + 5_000)
      const run = await supervisor.ended('r')
      assert.equal(run.status, 'completed')
      assert.equal(run.recoveryAttempts, 1)
      await assertNothingStranded(assert)
    }).timeout(60_000)

    test('DL-10: SIGTERM hands runs back, and the next process goes on with them uncounted, as often as that happens', async ({
      assert,
    }) => {
      const options = { ...LONG, drainMs: 50 }
      await startHealthy(300)
      for (let round = 0; round < 5; round++) {
        const process = await supervisor.start('a', { options })
        if (round < 4) await until(isRunning)
        else break
        process.signal('SIGTERM')
        await process.ended()
        assert.equal(process.exitCode, 0, process.output)
        const run = await supervisor.engine.getRun('r')
        assert.equal(run?.recoveryAttempts, 0)
        await assertNothingStranded(assert)
      }
      const run = await supervisor.ended('r')
      assert.equal(run.status, 'completed')
      assert.equal(run.recoveryAttempts, 0)
    }).timeout(60_000)

    test('DL-10: a process that starts under the name of a killed one takes its runs over at once; that is a crash, and counted', async ({
      assert,
    }) => {
      const killed = await supervisor.start('a', { options: LONG })
      await startHealthy(500)
      await until(isRunning)
      await killed.kill()
      await supervisor.start('a', { options: LONG })
      const run = await supervisor.ended('r')
      assert.equal(run.status, 'completed')
      assert.equal(run.recoveryAttempts, 1)
      await assertNothingStranded(assert)
    }).timeout(60_000)

    test('DL-10: ten SIGKILLs under the development server during one run are not counted, though the cap is 5', async ({
      assert,
    }) => {
      const options = { ...LONG, maxRecoveryAttempts: 5 }
      const order = { options, env: { DEV_MODE: 'true' } }
      await startHealthy(400)
      for (let save = 0; save <= 10; save++) {
        const process = await supervisor.start('a', order)
        await until(isRunning)
        if (save < 10) await process.kill()
      }
      const run = await supervisor.ended('r')
      assert.equal(run.status, 'completed')
      assert.equal(run.recoveryAttempts, 0)
      await assertNothingStranded(assert)
    }).timeout(120_000)

    test('DL-10: runs of a process outside of the development server count, though the one that takes them up is under it', async ({
      assert,
    }) => {
      const killed = await supervisor.start('a', { options: LONG })
      await startHealthy(300)
      await until(isRunning)
      await killed.kill()
      await supervisor.start('a', { options: LONG, env: { DEV_MODE: 'true' } })
      const run = await supervisor.ended('r')
      assert.equal(run.recoveryAttempts, 1)
    }).timeout(60_000)

    test('DL-10: a process that was stopped past its lease and continued is not counted while nobody else has recovered it (P9)', async ({
      assert,
    }) => {
      const process = await supervisor.start('a', { options: OPTIONS })
      await startHealthy(400)
      await until(isRunning)
      const worker = await onlyWorker(supervisor.engine)
      process.signal('SIGSTOP')
      const store = await internalsOf(supervisor.engine).store()
      await until(async () => (await store.now()) > worker.until)
      process.signal('SIGCONT')
      const run = await supervisor.ended('r')
      assert.equal(run.status, 'completed')
      assert.equal(run.recoveryAttempts, 0)
      await assertNothingStranded(assert)
    }).timeout(60_000)

    test('DL-6, DL-24: a run that kills its process is dead after the pickups of the cap, with one handler run, whoever is started after', async ({
      assert,
    }) => {
      const { engine } = supervisor
      await engine.start(POISON, null, 'p')
      supervisor.supervise(2, { options: { ...OPTIONS, maxRecoveryAttempts: 3 } })
      const run = await supervisor.ended('p')
      assert.equal(run.status, 'dead')
      assert.equal(run.recoveryAttempts, 4)
      const handled = await supervisor.ended('dlq:p')
      assert.match(String(handled.output), /running was step "kill"/)
      assert.equal(supervisor.restarts, 4)
      const { runs } = await engine.listRuns()
      assert.sameMembers(
        runs.map(({ id }) => id),
        ['p', 'dlq:p']
      )
      const history = await engine.getHistory('p')
      assert.deepEqual(
        history?.records.map(({ name }) => name),
        ['prepare']
      )
      await assertNothingStranded(assert)
    }).timeout(60_000)
  })

import type { Assert } from '@japa/assert'
import { test } from '@japa/runner'
import { writeFileSync } from 'node:fs'
import { SQL_KINDS } from '../stores/databases.ts'
import { onlyWorker } from '../support/only_worker.ts'
import { LeaseProcesses } from './lease_processes.ts'
import { endOf, factsOf } from './run_facts.ts'

const LEASE_MS = 1_500
const OPTIONS = { leaseMs: LEASE_MS, hangMs: 60_000 }

for (const kind of SQL_KINDS)
  test.group(`Worker processes on ${kind}`, (group) => {
    let processes: LeaseProcesses
    group.each.setup(async () => {
      processes = await LeaseProcesses.on(kind)
      return () => processes.close()
    })

    /** The run ended once, whoever had to do with it: one record per step, and the second step in two processes. */
    async function assertTakenOver(
      assert: Assert,
      pids: { from: number | undefined; to: number | undefined }
    ) {
      const { engine } = processes
      const run = await engine.getRun('r')
      assert.equal(run?.status, 'completed')
      assert.equal(run?.output, pids.to)
      assert.equal(run?.recoveryAttempts, 1)
      const history = await engine.getHistory('r')
      assert.deepEqual(
        history?.records.map(({ name, status }) => ({ name, status })),
        ['first', 'second', 'third'].map((name) => ({ name, status: 'completed' }))
      )
      assert.deepEqual(processes.executions(), [[pids.from], [pids.from, pids.to], [pids.to]])
      assert.deepEqual(await engine.findStranded(), [])
    }

    test('the run of a killed one is taken up by another within leaseMs and a little, counted (DL-1)', async ({
      assert,
    }) => {
      const victim = await processes.start({ name: 'a', options: OPTIONS, waits: true })
      await processes.startRun()
      await processes.secondBegun()
      const heir = await processes.start({ name: 'b', options: OPTIONS })
      await processes.renewed('b', 3)
      await victim.kill()
      const killed = performance.now()
      await processes.engine.waitForRun('r')
      assert.isBelow(performance.now() - killed, LEASE_MS + 5_000)
      await assertTakenOver(assert, { from: victim.pid, to: heir.pid })
    })

    test('a process that starts under the name of a killed one takes its run over at once, while others wait for the lease', async ({
      assert,
    }) => {
      const options = { leaseMs: 600_000, hangMs: 900_000 }
      const victim = await processes.start({ name: 'a', options, waits: true })
      await processes.startRun()
      await processes.secondBegun()
      await victim.kill()
      const other = await processes.start({ name: 'b', options: OPTIONS })
      await processes.renewed('b', 6)
      const waiting = await factsOf(processes.engine, 'r')
      assert.equal(waiting.status, 'running')
      const successor = await processes.start({ name: 'a', options })
      await processes.engine.waitForRun('r')
      const workers = await processes.engine.listWorkers()
      const expired = workers.filter(({ name, lost }) => name === 'a' && lost)
      assert.lengthOf(expired, 1)
      assert.isAbove(expired[0]?.until ?? 0, Date.now())
      // Once the run is due again, whoever claims first has it.
      const { output } = await factsOf(processes.engine, 'r')
      const heir = [successor, other].find(({ pid }) => pid === output)
      assert.isDefined(heir)
      await assertTakenOver(assert, { from: victim.pid, to: heir?.pid })
    })

    test('a step that blocks the event loop past the lease loses the run: one record per step, and the process goes on afterwards (case 4, P1)', async ({
      assert,
    }) => {
      const go = processes.file('go')
      const blocked = await processes.start({ name: 'a', options: OPTIONS, blockUntil: go })
      await processes.startRun()
      await processes.secondBegun()
      const other = await processes.start({ name: 'b', options: OPTIONS })
      await processes.engine.waitForRun('r')
      writeFileSync(go, '')
      await processes.renewed('a', 3)
      await assertTakenOver(assert, { from: blocked.pid, to: other.pid })

      other.tell('stop')
      await other.ended()
      await processes.startRun('next')
      const next = await processes.engine.waitForRun('next')
      assert.equal(next.output, blocked.pid)
      assert.equal(next.recoveryAttempts, 0)
    })

    test('one that was stopped past its lease and continued loses the run, writes nothing of it, and goes on afterwards (P9)', async ({
      assert,
    }) => {
      const stopped = await processes.start({ name: 'a', options: OPTIONS, waits: true })
      await processes.startRun()
      await processes.secondBegun()
      const other = await processes.start({ name: 'b', options: OPTIONS })
      stopped.signal('SIGSTOP')
      stopped.tell('go')
      await processes.engine.waitForRun('r')
      stopped.signal('SIGCONT')
      await processes.renewed('a', 3)
      await assertTakenOver(assert, { from: stopped.pid, to: other.pid })

      other.tell('stop')
      await other.ended()
      await processes.startRun('next')
      const next = await endOf(processes.engine, 'next')
      assert.equal(next.output, stopped.pid)
    })

    test('all of them stopped past their leases and continued: each goes on with its own run, nothing is counted (P9)', async ({
      assert,
    }) => {
      const both = [
        await processes.start({ name: 'a', options: OPTIONS, waits: true }),
        await processes.start({ name: 'b', options: OPTIONS, waits: true }),
      ]
      await processes.startRun()
      await processes.secondBegun()
      await processes.renewed('b', 4)
      for (const one of both) one.signal('SIGSTOP')
      const { engine } = processes
      const [a, b] = await engine.listWorkers()
      assert.isDefined(b)
      await processes.passed(Math.max(a?.until ?? 0, b?.until ?? 0))
      for (const one of both) one.signal('SIGCONT')
      await processes.renewed('a', 1)
      await processes.renewed('b', 1)
      for (const one of both) one.tell('go')
      const run = await engine.waitForRun('r')
      assert.equal(run.recoveryAttempts, 0)
      assert.deepEqual(
        processes.executions().map((pids) => pids.length),
        [1, 1, 1]
      )
    })
  })

test.group('Watchdog of a worker process', (group) => {
  let processes: LeaseProcesses
  group.each.setup(async () => {
    processes = await LeaseProcesses.on('SQLite')
    return () => processes.close()
  })
  const options = { leaseMs: 600, hangMs: 1_200 }

  test('ends a process whose event loop hangs, after hangMs', async ({ assert }) => {
    const never = processes.file('never')
    const hung = await processes.start({
      ...{ name: 'a', options, watchdog: true, blockUntil: never },
    })
    await processes.startRun()
    await processes.secondBegun()
    const from = performance.now()
    await hung.ended()
    assert.equal(hung.killedBy, 'SIGKILL')
    assert.isAtLeast(performance.now() - from, options.hangMs * 0.8)

    const heir = await processes.start({ name: 'a', options, watchdog: true })
    const run = await processes.engine.waitForRun('r')
    assert.equal(run.output, heir.pid)
  })

  test('leaves a process alone that was stopped for longer than hangMs and continued', async ({
    assert,
  }) => {
    const stopped = await processes.start({ name: 'a', options, watchdog: true })
    const worker = await onlyWorker(processes.engine)
    stopped.signal('SIGSTOP')
    await processes.passed(worker.until + 2 * options.hangMs)
    stopped.signal('SIGCONT')
    // The renewals of more than hangMs.
    await processes.renewed('a', 8)
    assert.isNull(stopped.killedBy)
    await processes.startRun()
    const run = await endOf(processes.engine, 'r')
    assert.equal(run.output, stopped.pid)
  })
})

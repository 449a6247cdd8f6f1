import type { Assert } from '@japa/assert'
import { test } from '@japa/runner'
import { setTimeout as delay } from 'node:timers/promises'
import { decode } from '../../src/core/payload.ts'
import { connectClient } from '../stores/postgres_server.ts'
import { findBinaries, PostgresInstance } from '../stores/postgres_instance.ts'
import { until } from '../support/until.ts'
import { Fleet, type FleetProcess } from './fleet.ts'
import { type Expected, type Outcome, startMixed } from './mixed_runs.ts'

const BINARIES = await findBinaries()
const IS_SKIPPED = BINARIES === null && !process.env.DURABLE_REQUIRE_SERVICES
const REASON = 'no programs of a PostgreSQL server are installed'

const USERS = ['a', 'b', 'c']
/** Of each kind; a parent has 15 children. */
const STARTS = 20
const LEASE_MS = 3_000
/** A worker whose connections are cut again and again comes to its renewals only now and then. */
const LONG_LEASE_MS = 20_000
const STEPS_BETWEEN_CUTS = 3
/** What P9 allows for between a service's return and progress; a busy machine takes longer for everything. */
const PROGRESS_MS = 3 * (LEASE_MS + 5_000)

/** Runs that a worker executes, by its name. */
const HELD = `select count(*) from durable_runs where status = 'running' and due_at is null and owner in
  (select instance from durable_workers where name = $1)`
/** Cuts the connections of the worker that is user `a`. */
const CUT = `select count(pg_terminate_backend(pid)) from pg_stat_activity
  where usename = 'a' and application_name = 'durable'`

test.group('Workers on PostgreSQL with hundreds of runs in flight', (group) => {
  let instance: PostgresInstance
  let fleet: Fleet
  let expected: Expected

  group.setup(async () => {
    if (IS_SKIPPED) return () => {}
    instance = await PostgresInstance.start(BINARIES ?? '', ['fsync = off'])
    const client = await connectClient('postgres', instance.server)
    for (const user of USERS) await client.query(`create role ${user} superuser login`)
    await client.end()
    return () => instance.remove()
  })
  group.each.setup(async () => {
    if (IS_SKIPPED) return () => {}
    fleet = await Fleet.on(instance.server)
    return () => fleet.close()
  })
  group.tap((each) => each.skip(IS_SKIPPED, REASON).timeout(120_000))

  /** Starts everything, and resolves when an eighth has ended. */
  async function begin(leaseMs = LEASE_MS): Promise<void> {
    await fleet.work(USERS, leaseMs)
    expected = await startMixed(fleet.engine, STARTS)
    await fleet.untilEnded(expected.outcomes.size / 8)
  }

  /** Resolves to the ms until more runs have ended than now. */
  async function progress(): Promise<number> {
    const from = performance.now()
    await fleet.untilEnded((await fleet.ended()) + 1)
    return Math.round(performance.now() - from)
  }

  async function outcomes(): Promise<Map<string, Outcome>> {
    const rows = await fleet.query<{
      id: string
      status: string
      output: string | null
      error_code: string | null
    }>(
      `select id, status, output, error_code from durable_runs join durable_payloads on run_id = id`
    )
    return new Map(
      rows.map(({ id, status, output, error_code: code }) => [
        id,
        status === 'completed' ? { output: decode(output ?? '') } : { failed: code ?? status },
      ])
    )
  }

  /** Everything has come to its end, whatever happened on the way. Resolves to the attempts that were executed twice. */
  async function assertAllEnded(assert: Assert, { recoveries }: { recoveries: number }) {
    await fleet.untilEnded(expected.outcomes.size)
    assert.deepEqual(await fleet.engine.findStranded(), [])
    const ended = await outcomes()
    assert.sameMembers([...ended.keys()], [...expected.outcomes.keys()])
    for (const [id, outcome] of expected.outcomes) assert.deepEqual(ended.get(id), outcome, id)
    assert.equal(await fleet.count('select count(*) from durable_history'), expected.records)
    assert.equal(await fleet.count('select sum(recovery_attempts) from durable_runs'), recoveries)
    const left = ['waits', 'inbox', 'signals'].map((table) => `select 1 from durable_${table}`)
    assert.equal(await fleet.count(`select count(*) from (${left.join(' union all ')}) x`), 0)
    const codes = await fleet.stop()
    assert.deepEqual(
      codes,
      USERS.map(() => 0)
    )
    const executions = Map.groupBy(fleet.effects.list(), ({ attempt }) => attempt)
    assert.equal(executions.size, expected.steps)
    return [...executions].filter(([, pids]) => pids.length > 1)
  }

  test('the server goes away for twice the lease: everybody goes on with its own runs, no step runs twice, nothing is counted (P1, P4, P9)', async ({
    assert,
  }) => {
    await begin()
    await instance.goAway()
    await delay(2 * LEASE_MS)
    await instance.comeBack()
    const ms = await progress()
    console.log(`progress ${ms} ms after the server's return`)
    assert.isBelow(ms, PROGRESS_MS)
    assert.deepEqual(await assertAllEnded(assert, { recoveries: 0 }), [])
  })

  for (const mode of ['fast', 'immediate'] as const)
    test(`the server is restarted (${mode}): no step runs twice, nothing is counted (P1, P4, P9)`, async ({
      assert,
    }) => {
      await begin()
      await instance.restart({ mode })
      const ms = await progress()
      console.log(`progress ${ms} ms after the restart`)
      assert.isBelow(ms, PROGRESS_MS)
      assert.deepEqual(await assertAllEnded(assert, { recoveries: 0 }), [])
    })

  test('the connections of one worker are cut again and again: no step runs twice, nothing is counted (P1, P4, P9)', async ({
    assert,
  }) => {
    await begin(LONG_LEASE_MS)
    const [victim] = fleet.processes
    const stepsBegun = () => fleet.effects.list().filter(({ pid }) => pid === victim?.pid).length
    let cuts = 0
    let begun = stepsBegun()
    await until(async () => {
      if (stepsBegun() >= begun + STEPS_BETWEEN_CUTS) {
        if ((await fleet.count(CUT)) > 0) cuts++
        begun = stepsBegun()
      }
      return (await fleet.ended()) >= expected.outcomes.size * 0.8
    })
    console.log(`connections cut ${cuts} times`)
    assert.isAbove(cuts, 2)
    assert.deepEqual(await assertAllEnded(assert, { recoveries: 0 }), [])
  })

  /** Stops a worker at a moment when it executes runs. */
  async function stopWithRuns(victim: FleetProcess, name: string): Promise<number> {
    for (;;) {
      victim.signal('SIGSTOP')
      const runs = await fleet.count(HELD, [name])
      if (runs > 5) return runs
      victim.signal('SIGCONT')
      await delay(5)
    }
  }

  test('a worker is stopped past its lease and continued: others take its runs, counted, and only its steps in flight run twice (P1, P4, P9)', async ({
    assert,
  }) => {
    await begin()
    const [victim] = fleet.processes
    if (!victim) throw new Error('There is no worker to stop')
    await stopWithRuns(victim, 'a')
    const stopped = performance.now()
    await until(async () => (await fleet.count(HELD, ['a'])) === 0)
    const ms = Math.round(performance.now() - stopped)
    console.log(`its runs were taken ${ms} ms after it was stopped`)
    assert.isBelow(ms, PROGRESS_MS)
    const taken = await fleet.count('select sum(recovery_attempts) from durable_runs')
    await fleet.untilEnded(expected.outcomes.size * 0.8)
    victim.signal('SIGCONT')
    const twice = await assertAllEnded(assert, { recoveries: taken })
    for (const [attempt, executions] of twice) {
      assert.lengthOf(executions, 2, attempt)
      assert.equal(executions[0]?.pid, victim.pid, attempt)
      assert.notEqual(executions[1]?.pid, victim.pid, attempt)
    }
    assert.isAtMost(twice.length, taken)
  })
})

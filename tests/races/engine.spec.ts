import { test } from '@japa/runner'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { WorkflowEngine } from '../../src/engine/engine.ts'
import { Effects } from '../support/effects.ts'
import { ForkedProcess } from '../support/forked_process.ts'
import { processApp } from '../support/process_app.ts'
import { SqliteDatabase } from '../stores/sqlite_database.ts'
import { cleanUp } from '../support/clean_up.ts'
import { registerRacing, startRacing } from './racing_runs.ts'

const STARTS = 3_000
const SCRIPT = new URL('./engine_process.ts', import.meta.url)

/** Workers in processes of their own, and in this one the application that starts runs. */
class Race {
  readonly database: SqliteDatabase
  readonly effects: Effects
  readonly engine: WorkflowEngine
  workers: ForkedProcess<'ready'>[] = []
  #effectsFile: string

  private constructor(database: SqliteDatabase, engine: WorkflowEngine) {
    this.database = database
    this.engine = engine
    this.#effectsFile = join(database.file, '..', 'effects')
    this.effects = new Effects(this.#effectsFile)
  }

  static async create(): Promise<Race> {
    const database = await SqliteDatabase.create()
    const { engine } = processApp(await database.store())
    registerRacing(engine, () => {})
    return new Race(database, engine)
  }

  async work(count: number, leaseMs: number): Promise<void> {
    const args = [this.database.file, this.#effectsFile, String(leaseMs)]
    for (let index = 0; index < count; index++)
      this.workers.push(new ForkedProcess<'ready'>(SCRIPT, args))
    for (const worker of this.workers) await worker.heard()
  }

  async completed(atLeast: number): Promise<void> {
    const sql = `select count(*) as count from durable_runs where status = 'completed'`
    while ((await this.count(sql)) < atLeast) await delay(5)
  }

  /** Kills a worker at a moment when it executes runs; resolves to their number. */
  async killWithRuns(victim: ForkedProcess<'ready'>): Promise<number> {
    const sql = `select count(*) as count from durable_runs where status = 'running' and owner in
      (select instance from durable_workers where json_extract(descriptor, '$.pid') = ${victim.pid})`
    for (;;) {
      victim.signal('SIGSTOP')
      if ((await this.count(sql)) > 0) break
      victim.signal('SIGCONT')
      await delay(1)
    }
    await victim.kill()
    return this.count(sql)
  }

  async count(sql: string): Promise<number> {
    const [row] = await this.database.db.rawQuery(sql)
    return row.count
  }

  async close(): Promise<void> {
    await cleanUp(
      ...this.workers.map((worker) => () => worker.kill()),
      () => this.engine.stop(),
      () => this.database.remove()
    )
  }
}

test.group('Worker processes racing on one SQLite file', (group) => {
  let race: Race
  group.each.setup(async () => {
    race = await Race.create()
    return () => race.close()
  })

  for (const workers of [2, 8])
    test(`${workers} of them: every run completes, every operation has one record and every step one effect, and nobody finds the database locked (P1, P4, case 32)`, async ({
      assert,
    }) => {
      await race.work(workers, 30_000)
      const begin = performance.now()
      const expected = await startRacing(race.engine, STARTS)
      await race.completed(expected.runs)
      const seconds = (performance.now() - begin) / 1000
      console.log(
        `${workers} processes: ${Math.round(expected.runs / seconds)} runs/s, ` +
          `${Math.round(expected.steps / seconds)} steps/s`
      )
      assert.deepEqual(await race.engine.findStranded(), [])
      for (const worker of race.workers) worker.tell({})
      for (const worker of race.workers) await worker.ended()
      for (const worker of race.workers) {
        assert.equal(worker.exitCode, 0)
        assert.equal(worker.output, '')
      }
      assert.equal(await race.count('select count(*) as count from durable_runs'), expected.runs)
      assert.equal(
        await race.count('select count(*) as count from durable_history'),
        expected.records
      )
      const effects = race.effects.list()
      assert.lengthOf(effects, expected.steps)
      assert.equal(new Set(effects.map(({ attempt }) => attempt)).size, expected.steps)
      assert.equal(new Set(effects.map(({ pid }) => pid)).size, workers)
      assert.deepEqual(await race.engine.listWorkers(), [])
      assert.equal(await race.count('select sum(recovery_attempts) as count from durable_runs'), 0)
    }).timeout(120_000)

  test('three of them, one killed on the way and not started again: the others finish its runs when its lease has expired, and only its steps in flight run twice (DL-1, P9)', async ({
    assert,
  }) => {
    await race.work(3, 3_000)
    const expected = await startRacing(race.engine, STARTS)
    await race.completed(expected.runs / 4)
    const [victim, ...others] = race.workers
    if (!victim) throw new Error('There is no worker to kill')
    const taken = await race.killWithRuns(victim)
    await race.completed(expected.runs)

    assert.deepEqual(await race.engine.findStranded(), [])
    for (const worker of others) worker.tell({})
    for (const worker of others) await worker.ended()
    assert.deepEqual(
      others.map(({ exitCode }) => exitCode),
      [0, 0]
    )
    assert.equal(
      await race.count('select count(*) as count from durable_history'),
      expected.records
    )
    assert.equal(
      await race.count('select sum(recovery_attempts) as count from durable_runs'),
      taken
    )
    const pids = Map.groupBy(race.effects.list(), ({ attempt }) => attempt)
    assert.equal(pids.size, expected.steps)
    for (const [attempt, executions] of pids) {
      if (executions.length === 1) continue
      assert.lengthOf(executions, 2, attempt)
      assert.equal(executions[0]?.pid, victim.pid, attempt)
      assert.notEqual(executions[1]?.pid, victim.pid, attempt)
    }
    for (const { output } of race.workers) assert.notMatch(output, /locked|BUSY/)
  }).timeout(120_000)
})

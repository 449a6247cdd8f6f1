import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { StoredRun } from '../../src/contracts/store.ts'
import { type HistoryRecord, liveAndUndone, stepId, type Wait } from '../../src/core/history.ts'
import type { CrashMoment, CrashPoint } from '../../src/testing/crash_store.ts'
import type { CrashDatabases } from './crash_databases.ts'
import { type CrashDatabase, withStore } from './crash_database.ts'
import type { CrashOrder, CrashReport } from './crash_process.ts'
import { attemptId, Effects } from '../support/effects.ts'
import { ForkedProcess } from '../support/forked_process.ts'
import { LIFE, type Scenario } from './scenario.ts'
import { type ScenarioName, SCENARIOS } from './scenarios.ts'

/** What the database and the world look like at one moment. */
export interface Picture {
  runs: Map<string, { run: StoredRun; records: HistoryRecord[]; waits: Wait[] }>
  effects: Map<string, number>
}

/** A scenario that was killed once, or more often, and then came to its end. */
export interface Survived {
  point: CrashPoint
  /** At each kill. */
  killed: Picture[]
  end: Picture
  report: CrashReport
}

/** A claim may take what has become due since it was looked for: no process can be killed before that write. */
const MISSES = 20

type CrashProcess = ForkedProcess<CrashReport>

/** Makes processes die at chosen points of a scenario, and others take it to its end. */
export class CrashPoints {
  #name: ScenarioName
  #directory: string
  #count = 0
  #databases: CrashDatabases
  #spares = new Set<CrashProcess>()

  private constructor(
    name: ScenarioName,
    params: { directory: string; databases: CrashDatabases }
  ) {
    this.#name = name
    this.#directory = params.directory
    this.#databases = params.databases
  }

  static async of(name: ScenarioName, databases: CrashDatabases): Promise<CrashPoints> {
    const directory = await mkdtemp(join(tmpdir(), 'durable-crash-'))
    return new CrashPoints(name, { directory, databases })
  }

  async close(): Promise<void> {
    for (const spare of this.#spares) await spare.kill()
    await rm(this.#directory, { recursive: true })
  }

  /** The scenario without a kill. */
  undisturbed(): Promise<{ end: Picture; report: CrashReport }> {
    return this.#onDatabase(async (database) => {
      const process = this.#fork()
      const order = await this.#order(database, null)
      process.tell(order)
      const report = await process.heard()
      await process.kill()
      return { end: await this.#picture(database, order), report }
    })
  }

  /**
   * Kills one process after the other at writes 1, 2, ... until one comes to the end of the scenario with fewer.
   * Resolves to their number. Each process that takes a scenario to its end is the next to be killed.
   */
  each(moment: CrashMoment, check: (survived: Survived) => void): Promise<number> {
    return this.#onDatabase(async (database) => {
      let process = this.#fork()
      let misses = 0
      for (let write = 1; misses < MISSES;) {
        const point = { moment, write }
        const order = await this.#order(database, point)
        const successor = this.#fork()
        process.tell(order)
        const lived = await process.next()
        if (lived) {
          await process.kill()
          if (lived.writes < write) return write - 1
          misses++
        } else {
          this.#refuseOtherDeaths(process)
          const killed = [await this.#picture(database, order)]
          successor.tell({ ...order, point: null })
          const report = await successor.heard()
          check({ point, killed, end: await this.#picture(database, order), report })
          misses = 0
          write++
        }
        process = successor
      }
      throw new Error(`${MISSES} processes in a row began a write without being seen to`)
    })
  }

  /** Kills up to `lives` processes at the same point of their lives until one comes to the end alive. */
  again(point: CrashPoint, lives: number): Promise<Survived> {
    return this.#onDatabase(async (database) => {
      const order = await this.#order(database, point)
      const killed: Picture[] = []
      while (killed.length < lives) {
        const process = this.#fork()
        process.tell(order)
        const report = await process.next()
        if (report) {
          await process.kill()
          return { point, killed, end: await this.#picture(database, order), report }
        }
        this.#refuseOtherDeaths(process)
        killed.push(await this.#picture(database, order))
      }
      throw new Error(`The scenario has not ended after ${lives} kills`)
    })
  }

  async #onDatabase<T>(work: (database: CrashDatabase) => Promise<T>): Promise<T> {
    const database = await this.#databases.take()
    const { prepare = async () => {} }: Scenario = SCENARIOS[this.#name]
    await database.prepare(prepare)
    const result = await work(database)
    this.#databases.giveBack(database)
    return result
  }

  #refuseOtherDeaths(process: CrashProcess): void {
    if (process.killedBy === 'SIGKILL' && process.output === '') return
    throw new Error(`Ended by ${process.killedBy ?? process.exitCode}: ${process.output}`)
  }

  #fork(): CrashProcess {
    const process: CrashProcess = new ForkedProcess(new URL('./crash_process.ts', import.meta.url))
    this.#spares.add(process)
    void process.ended().then(() => this.#spares.delete(process))
    return process
  }

  async #order(database: CrashDatabase, point: CrashPoint | null): Promise<CrashOrder> {
    const effects = join(this.#directory, `${this.#count++}.effects`)
    return { scenario: this.#name, database: await database.begin(), effects, point }
  }

  async #picture(database: CrashDatabase, { database: address, effects }: CrashOrder) {
    await database.quiet()
    const runs: Picture['runs'] = new Map()
    await withStore(address, async (store) => {
      for (const id of Object.keys(SCENARIOS[this.#name].outcomes)) {
        const run = await store.getRun(id)
        const history = await store.getHistory(id)
        if (run && history) runs.set(id, { run, ...history })
      }
    })
    return { runs, effects: new Effects(effects).counts() }
  }
}

/** Attempts of steps whose end the database knows of. */
function recordedAttempts({ runs }: Picture): Set<string> {
  const known = new Set<string>()
  const add = (step: string, { attempts, from }: { attempts: number; from: number }) => {
    for (let attempt = 1; attempt <= attempts; attempt++) known.add(attemptId(step, from + attempt))
  }
  for (const [runId, { records, waits }] of runs) {
    const isRequeued = records.some(({ generation }) => generation > 0)
    for (const { seq, attempts, generation } of records) {
      const step = stepId(runId, seq, undoneBefore(records, generation))
      add(step, { attempts, from: 0 })
      // What a requeued run has recorded since it did in its second life.
      if (isRequeued && generation === 0) add(step, { attempts, from: LIFE })
    }
    for (const { seq, attempts } of waits)
      add(stepId(runId, seq, undoneBefore(records, 0)), { attempts, from: 0 })
  }
  return known
}

/** Positions that were undone before a generation began. */
function undoneBefore(records: readonly HistoryRecord[], generation: number): number[] {
  const earlier = records.filter(
    (record) => generation === 0 || (record.generation > 0 && record.generation < generation)
  )
  return liveAndUndone(earlier).undone
}

/** Attempts that had an effect and no record: those that were in flight. */
export function inFlight(picture: Picture): Set<string> {
  const known = recordedAttempts(picture)
  return new Set([...picture.effects.keys()].filter((attempt) => !known.has(attempt)))
}

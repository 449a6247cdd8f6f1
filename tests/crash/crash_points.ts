import { copyFile, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { StoredRun } from '../../src/contracts/store.ts'
import type { HistoryRecord, Wait } from '../../src/core/history.ts'
import { LucidStore } from '../../src/stores/lucid/lucid_store.ts'
import type { CrashMoment, CrashPoint } from '../../src/testing/crash_store.ts'
import { connectTo, SqliteDatabase } from '../stores/sqlite_database.ts'
import type { CrashOrder, CrashReport } from './crash_process.ts'
import { attemptId, Effects } from './effects.ts'
import { ForkedProcess } from './forked_process.ts'
import { LIFE } from './scenario.ts'
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

type CrashProcess = ForkedProcess<CrashReport>

/** Makes processes die at chosen points of a scenario, and others take it to its end. */
export class CrashPoints {
  #scenario: ScenarioName
  #directory: string
  #count = 0
  #template: SqliteDatabase
  #spares = new Set<CrashProcess>()

  private constructor(
    scenario: ScenarioName,
    params: { directory: string; template: SqliteDatabase }
  ) {
    this.#scenario = scenario
    this.#directory = params.directory
    this.#template = params.template
  }

  static async of(scenario: ScenarioName): Promise<CrashPoints> {
    const directory = await mkdtemp(join(tmpdir(), 'durable-crash-'))
    return new CrashPoints(scenario, { directory, template: await SqliteDatabase.create() })
  }

  async close(): Promise<void> {
    for (const spare of this.#spares) await spare.kill()
    await this.#template.remove()
    await rm(this.#directory, { recursive: true })
  }

  /** The scenario without a kill. */
  async undisturbed(): Promise<{ end: Picture; report: CrashReport }> {
    const process = this.#fork()
    const order = await this.#order(null)
    process.tell(order)
    const report = await process.heard()
    await process.kill()
    return { end: await this.#picture(order), report }
  }

  /**
   * Kills one process after the other at writes 1, 2, ... until one comes to the end of the scenario alive, and not
   * before `atLeast` writes. Each process that takes a scenario to its end is the next to be killed.
   */
  async each(
    moment: CrashMoment,
    params: { atLeast: number; check: (survived: Survived) => void }
  ): Promise<number> {
    let process = this.#fork()
    let points = 0
    for (let write = 1; ; write++) {
      const point = { moment, write }
      const order = await this.#order(point)
      const successor = this.#fork()
      process.tell(order)
      const lived = await process.next()
      if (lived && write > params.atLeast) {
        await Promise.all([process.kill(), successor.kill()])
        return points
      }
      if (lived) {
        await process.kill()
        process = successor
        continue
      }
      this.#refuseOtherDeaths(process)
      points++
      const killed = [await this.#picture(order)]
      successor.tell({ ...order, point: null })
      const report = await successor.heard()
      params.check({ point, killed, end: await this.#picture(order), report })
      process = successor
    }
  }

  /** Kills up to `lives` processes at the same point of their lives until one comes to the end alive. */
  async again(point: CrashPoint, lives: number): Promise<Survived> {
    const order = await this.#order(point)
    const killed: Picture[] = []
    while (killed.length < lives) {
      const process = this.#fork()
      process.tell(order)
      const report = await process.next()
      if (report) {
        await process.kill()
        return { point, killed, end: await this.#picture(order), report }
      }
      this.#refuseOtherDeaths(process)
      killed.push(await this.#picture(order))
    }
    throw new Error(`The scenario has not ended after ${lives} kills`)
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

  async #order(point: CrashPoint | null): Promise<CrashOrder> {
    const name = join(this.#directory, String(this.#count++))
    await copyFile(this.#template.file, `${name}.sqlite3`)
    const effects = `${name}.effects`
    return { scenario: this.#scenario, database: `${name}.sqlite3`, effects, point }
  }

  async #picture({ database, effects }: CrashOrder): Promise<Picture> {
    const db = connectTo(database)
    const store = new LucidStore({ db })
    await store.open()
    const runs: Picture['runs'] = new Map()
    for (const id of Object.keys(SCENARIOS[this.#scenario].outcomes)) {
      const run = await store.getRun(id)
      const history = await store.getHistory(id)
      if (run && history) runs.set(id, { run, ...history })
    }
    await store.close()
    await db.manager.closeAll()
    return { runs, effects: new Effects(effects).counts() }
  }
}

/** Attempts of steps whose end the database knows of. */
function recordedAttempts({ runs }: Picture): Set<string> {
  const known = new Set<string>()
  for (const [runId, { records, waits }] of runs) {
    const isRequeued = records.some(({ generation }) => generation > 0)
    for (const { seq, attempts } of [...records, ...waits])
      for (let attempt = 1; attempt <= attempts; attempt++)
        known.add(attemptId(`${runId}:${seq}`, attempt))
    // What a requeued run has recorded since it did in its second life.
    for (const { seq, attempts, generation } of records)
      if (isRequeued && generation === 0)
        for (let attempt = 1; attempt <= attempts; attempt++)
          known.add(attemptId(`${runId}:${seq}`, LIFE + attempt))
  }
  return known
}

/** Attempts that had an effect and no record: those that were in flight. */
export function inFlight(picture: Picture): Set<string> {
  const known = recordedAttempts(picture)
  return new Set([...picture.effects.keys()].filter((attempt) => !known.has(attempt)))
}

import { encode } from '../../src/core/payload.ts'
import type { Write } from '../../src/core/change_set.ts'
import { isTerminal } from '../../src/core/run.ts'
import { claimKey } from '../../src/core/name.ts'
import { MemoryDatabase } from '../../src/stores/memory/memory_database.ts'
import { MemoryStore } from '../../src/stores/memory/memory_store.ts'
import type { StepContext } from '../../src/types/step.ts'
import type { PlannedBody } from './body_plan.ts'
import type { Cut } from './cut_store.ts'
import { OutsideSignals } from './outside_signals.ts'
import { Random } from './random.ts'
import type { StepInput, Trace } from './random_body.ts'
import { errorLogged, SimulatedProcess } from './simulated_process.ts'
import { type OpenAttempt, StepDesk } from './step_desk.ts'
import { StepPost, type WeightedEvent } from './step_post.ts'

export interface SimulationParams {
  body: PlannedBody
  /** Decides the order of everything that happens. */
  seed: number
  /** What happens at which commit, counted from 1 over all processes. */
  cuts: ReadonlyMap<number, Cut>
  /** Suspended runs a process keeps in memory. */
  residentRuns: number
  /** Processes at once. */
  processes: number
  /** Without it, the run is stored by somebody else before the first process begins. */
  startedByProcess: boolean
}

export interface Simulated {
  database: MemoryDatabase
  /** By run: what each execution of its body saw. */
  traces: ReadonlyMap<string, readonly Trace[]>
  signalsSent: ReadonlySet<string>
  commits: number
  /** Cuts that happened. */
  cuts: number
  stepsBegun: number
  /** Attempts that were sent to workers. */
  stepsSent: number
}

const ROOT = 'r'
const MAX_EVENTS = 3_000
/** Rounds of the event loop in which nothing happens after which the simulation lets something happen. */
const QUIET_ROUNDS = 4
/** What a database takes its time for, while other things happen. */
const DELAYED: ReadonlySet<string> = new Set(['commit', 'load', 'claim', 'childOutcomes'])
/** Longest time in ms that it may take to come to rest. */
const PATIENCE_MS = 15_000
const { setImmediate, performance } = globalThis

/** Something that is wrong, whatever the order of events. */
export class SimulationFault extends Error {}

/** Runs a body to its end, in processes that die where they are told to. Rejects with SimulationFault. */
export async function simulate(params: SimulationParams): Promise<Simulated> {
  const simulation = new Simulation(params)
  try {
    return await simulation.run()
  } finally {
    simulation.end()
  }
}

class Simulation {
  #params: SimulationParams
  #random: Random
  #clock = 1_750_000_000_000
  #database = new MemoryDatabase({ clock: () => this.#clock })
  #outside = new MemoryStore(this.#database)
  #desk: StepDesk
  #post = new StepPost(this.#database)
  #processes: SimulatedProcess[] = []
  #traces = new Map<string, Trace[]>()
  #activity = 0
  #commits = 0
  #cuts = 0
  /** Processes whose connection broke, and which will send their commit again. */
  #repeating = new Set<SimulatedProcess>()
  #signals: OutsideSignals
  #faults: string[] = []
  #instances = 0
  #isOver = false

  constructor(params: SimulationParams) {
    this.#params = params
    this.#random = new Random(params.seed)
    this.#signals = new OutsideSignals(this.#outside, params.body.outsideSignals)
    this.#desk = new StepDesk({ database: this.#database, onActivity: () => this.#activity++ })
  }

  async run(): Promise<Simulated> {
    await this.#begin()
    for (let events = 0; ; events++) {
      if (events > MAX_EVENTS) throw new SimulationFault('The run does not end')
      await this.#quiet()
      this.#checkFaults()
      await this.#checkStranded()
      if (await this.#replaceLost()) continue
      const happen = this.#next()
      if (happen) happen()
      else if (!(await this.#stirs())) break
    }
    this.#checkEnded()
    this.#post.checkRecords()
    this.#checkFaults()
    return {
      database: this.#database,
      traces: this.#traces,
      signalsSent: this.#signals.sent,
      commits: this.#commits,
      cuts: this.#cuts,
      stepsBegun: this.#desk.begun,
      stepsSent: this.#post.sent,
    }
  }

  end(): void {
    this.#isOver = true
    for (const process of this.#processes) process.end()
    this.#desk.end()
  }

  async #begin(): Promise<void> {
    while (this.#signals.areLeft && this.#random.chance(0.3)) this.#signals.sendNext()
    if (!this.#params.startedByProcess) await this.#storeRoot()
    for (let number = 1; number <= this.#params.processes; number++)
      await this.#startProcess(`worker-${number}`)
  }

  async #storeRoot(): Promise<void> {
    const run = {
      ...{ id: ROOT, workflow: 'root', version: '1', namespace: 'default', origin: null },
      claimKey: claimKey('default', 'root', '1'),
      ...{ priority: 1 as const, input: encode(this.#params.body.plan), parent: null },
      ...{ createdBy: 'test', tags: [] },
    }
    await this.#outside.commit([{ type: 'start', run, leaseTo: null }])
  }

  async #startProcess(name: string): Promise<void> {
    const process: SimulatedProcess = new SimulatedProcess({
      ...{ database: this.#database, name, instance: `${name}#${++this.#instances}` },
      residentRuns: this.#params.residentRuns,
      // Where the outcome is known beforehand, nothing is ever given up.
      redispatchMax: this.#params.body.flavour === 'any' ? 2 : 1e9,
      transport: (owner) => this.#post.transport(owner),
      onFailure: (error) => this.#faults.push(`A process failed: ${String(error)}`),
      environment: {
        flavour: this.#params.body.flavour,
        begin: (runId) => this.#trace(runId),
        runStep: (input: StepInput, step: StepContext) => this.#desk.run(input, { process, step }),
      },
      listener: {
        active: () => this.#activity++,
        commit: (writes) => this.#onCommit(process, writes),
        applied: (writes, answers) => {
          writes.forEach((write, index) => {
            if (write.type !== 'turn' || answers[index]?.type !== 'committed') return
            for (const { id } of write.signals) this.#signals.sent.add(id)
          })
          this.#maybeSend(0.1)
        },
        cut: (cut) => {
          process.state = cut === 'stale' ? 'still' : 'gone'
        },
        delays: (method, args) => this.#delays(method, args),
      },
    })
    this.#processes.push(process)
    await process.start()
    if (!this.#database.runs.get(ROOT)) process.startRoot(ROOT, this.#params.body.plan)
  }

  #trace(runId: string): Trace {
    const trace: Trace = { entries: [], steps: [], ended: false }
    trace.entries.push = (...entries) => {
      this.#activity++
      return Array.prototype.push.apply(trace.entries, entries)
    }
    const traces = this.#traces.get(runId) ?? []
    this.#traces.set(runId, traces)
    traces.push(trace)
    return trace
  }

  #onCommit(process: SimulatedProcess, writes: readonly Write[]): Cut | null {
    if (this.#isOver) return null
    this.#maybeSend(0.1)
    const cut = this.#params.cuts.get(++this.#commits) ?? null
    if (cut) this.#cuts++
    // Nobody repeats what only wakes a run: it is found without.
    const isRepeated = writes.some(({ type }) => type !== 'wake')
    if (cut === 'unreachable' && isRepeated) this.#repeating.add(process)
    else this.#repeating.delete(process)
    return cut
  }

  /**
   * An answer to what sends steps comes at once: while one is under way, others may take up the run that it has
   * suspended, and then a step is rightly sent late.
   */
  #delays(method: string, [writes]: readonly unknown[]): boolean {
    if (this.#isOver || this.#params.body.flavour === 'ordered' || !DELAYED.has(method))
      return false
    const sends = (write: Write) =>
      write.type === 'turn' && write.opened.some(({ dispatch }) => dispatch !== null)
    if (method === 'commit' && (writes as Write[]).some(sends)) return false
    return this.#random.chance(0.1)
  }

  /** Waits until every process waits for something that the simulation decides. */
  async #quiet(): Promise<void> {
    let rounds = 0
    const since = performance.now()
    while (rounds < QUIET_ROUNDS) {
      if (performance.now() - since > PATIENCE_MS) {
        const why =
          this.#repeating.size > 0
            ? 'a commit is not repeated'
            : this.#desk.isBusy
              ? 'steps'
              : 'activity'
        throw new SimulationFault(`Does not come to rest: ${why}`)
      }
      const before = this.#activity
      await new Promise((resolve) => setImmediate(resolve))
      const isQuiet = before === this.#activity && !this.#desk.isBusy && this.#repeating.size === 0
      rounds = isQuiet ? rounds + 1 : 0
    }
  }

  /** Whether something happens by itself after all: a long replay shows itself in none of its rounds. */
  async #stirs(): Promise<boolean> {
    const before = this.#activity
    const since = performance.now()
    for (let rounds = 0; rounds < QUIET_ROUNDS;) {
      if (performance.now() - since > PATIENCE_MS)
        throw new SimulationFault('Does not come to rest: runs')
      await new Promise((resolve) => setImmediate(resolve))
      if (before !== this.#activity) return true
      rounds = this.#processes.every(({ isAtRest }) => isAtRest) ? rounds + 1 : 0
    }
    return false
  }

  /** A process that died is followed by another one; one that stood still goes on after that. */
  async #replaceLost(): Promise<boolean> {
    const lost = this.#processes.find(
      ({ name, state }) =>
        (state === 'gone' || state === 'still') &&
        !this.#processes.some((other) => other.name === name && other.state === 'alive')
    )
    if (lost) {
      await this.#startProcess(lost.name)
      return true
    }
    const still = this.#processes.find(({ state }) => state === 'still')
    if (!still || this.#random.chance(0.7)) return false
    still.state = 'outdated'
    still.store.goOn()
    return true
  }

  /** Something that can happen now; null = nothing can any more. */
  #next(): (() => void) | null {
    const attempts = [...this.#desk.open].filter(
      ({ process }) => process.state !== 'gone' && process.state !== 'still'
    )
    const due = this.#nextDue()
    const isFixed = this.#params.body.flavour === 'ordered'
    if (isFixed) {
      const attempt = attempts.sort(byRank)[0]
      if (attempt) return () => this.#finish(attempt)
    }
    const events: WeightedEvent[] = attempts.map((attempt) => [2, () => this.#finish(attempt)])
    if (due !== null) events.push([isFixed ? 1 : 2, () => this.#advance(due)])
    events.push(...this.#post.events(this.#processes))
    if (this.#signals.areLeft) events.push([1, () => this.#signals.sendNext()])
    for (const { state, store } of this.#processes)
      if (state === 'alive' || state === 'outdated')
        for (const arrive of store.late) events.push([2, arrive])
    if (this.#processes.some(({ state }) => state === 'still')) events.push([0.1, () => {}])
    if (events.length > 0) return this.#random.weighted(events)
    const missing = this.#missingSignal()
    return missing === null ? null : () => this.#signals.send(missing)
  }

  #finish(attempt: OpenAttempt): void {
    this.#desk.open.delete(attempt)
    attempt.finish()
  }

  #nextDue(): number | null {
    let next: number | null = null
    const now = this.#database.now()
    for (const row of this.#database.runs.rows()) {
      if (isTerminal(row.status)) continue
      const times = [row.dueAt, ...this.#database.waits.of(row.id).map(({ dueAt }) => dueAt)]
      for (const at of times) if (at !== null && at > now) next = Math.min(next ?? at, at)
    }
    return next
  }

  #advance(to: number): void {
    const isFixed = this.#params.body.flavour === 'ordered'
    const further = isFixed || this.#random.chance(0.7) ? 0 : this.#random.below(200_000)
    this.#clock = to + further
    this.#database.changed()
  }

  #maybeSend(probability: number): void {
    if (this.#isOver || !this.#signals.areLeft) return
    if (this.#random.chance(probability)) this.#signals.sendNext()
  }

  /** A token somebody waits for without end. */
  #missingSignal(): string | null {
    for (const row of this.#database.runs.rows())
      for (const wait of this.#database.waits.of(row.id)) if (wait.token !== null) return wait.token
    return null
  }

  #checkFaults(): void {
    const logged = this.#processes.map(({ app }) => errorLogged(app.log)).find((line) => line)
    const fault = this.#desk.faults[0] ?? this.#post.faults[0] ?? this.#faults[0] ?? logged
    if (fault) throw new SimulationFault(fault)
    for (const row of this.#database.runs.rows()) {
      if (row.status !== 'blocked') continue
      const error = this.#database.runs.payloads(row.id)?.error
      throw new SimulationFault(`Run ${row.id} is blocked: ${error}`)
    }
  }

  async #checkStranded(): Promise<void> {
    const [stranded] = await this.#outside.findStranded()
    if (stranded) throw new SimulationFault(`Run ${stranded.runId} is stranded: ${stranded.reason}`)
  }

  #checkEnded(): void {
    for (const row of this.#database.runs.rows())
      if (!isTerminal(row.status))
        throw new SimulationFault(`Run ${row.id} is ${row.status}, and nothing will happen to it`)
  }
}

function byRank(a: OpenAttempt, b: OpenAttempt): number {
  return a.rank < b.rank ? -1 : a.rank > b.rank ? 1 : 0
}

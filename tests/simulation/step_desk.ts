import type { HistoryRecord } from '../../src/core/history.ts'
import type { StepContext } from '../../src/types/step.ts'
import type { MemoryDatabase } from '../../src/stores/memory/memory_database.ts'
import { FatalError } from '../../src/errors.ts'
import type { StepInput } from './random_body.ts'
import type { SimulatedProcess } from './simulated_process.ts'

/** An attempt whose end the simulation decides. */
export interface OpenAttempt {
  process: SimulatedProcess
  runId: string
  /** Rank among open attempts where the simulation keeps a fixed order. */
  rank: string
  finish: () => void
  abandon: () => void
}

interface Execution {
  process: SimulatedProcess
  attempt: number
}

/**
 * Where every function of a step runs, in whatever process. It checks, as each attempt begins, that the attempt may:
 * nothing that is recorded is executed again, and nothing begins before what it depends on is durable.
 */
export class StepDesk {
  readonly open = new Set<OpenAttempt>()
  readonly faults: string[] = []
  /** Attempts begun. */
  begun = 0
  #database: MemoryDatabase
  #executions = new Map<string, Execution[]>()
  /** Functions at work whose end nobody decides. */
  #busy = new Set<{ process: SimulatedProcess }>()
  /** Attempts that a process will begin by itself. */
  #expected = new Map<string, SimulatedProcess>()
  #onActivity: () => void
  #isOver = false

  constructor(params: { database: MemoryDatabase; onActivity: () => void }) {
    this.#database = params.database
    this.#onActivity = params.onActivity
  }

  /**
   * Whether something goes on by itself in a process that lives. While an answer is under way to it, an attempt may have
   * been given up by a write that waits behind that answer.
   */
  get isBusy(): boolean {
    for (const { process } of this.#busy) if (process.state === 'alive') return true
    for (const [key, { state, store }] of this.#expected) {
      const [runId = ''] = key.split(':')
      const isRunning = this.#database.runs.get(runId)?.status === 'running'
      if (state === 'alive' && isRunning && store.late.size === 0) return true
    }
    return false
  }

  /** Ends every function that is still at work. */
  end(): void {
    this.#isOver = true
    for (const attempt of [...this.open]) attempt.abandon()
  }

  run(input: StepInput, params: { process: SimulatedProcess; step: StepContext }): unknown {
    const { process, step } = params
    if (this.#isOver) throw new FatalError('The simulation is over')
    this.#onActivity()
    this.#check(input, params)
    const { plan } = input
    this.#expected.delete(`${step.id}:${process.instance}`)
    const fails = step.attempt <= plan.failures
    const isLast = plan.fatal || step.attempt > plan.retries
    const end = () => {
      this.#onActivity()
      if (fails && !isLast && plan.backoff === 'short')
        this.#expected.set(`${step.id}:${process.instance}`, process)
      if (!fails) return `${input.name} done`
      const message = `${input.name} failed`
      throw plan.fatal ? new FatalError(message) : new Error(message)
    }
    if (plan.throwsAtOnce && fails) return end()
    return this.#pace(input, params).then(end)
  }

  async #pace(
    { plan, name }: StepInput,
    { process, step }: { process: SimulatedProcess; step: StepContext }
  ): Promise<void> {
    switch (plan.pace) {
      case 'immediate':
        return
      case 'ticks':
        for (let count = 0; count < plan.length; count++) await null
        return
      case 'macrotasks': {
        const busy = { process }
        this.#busy.add(busy)
        for (let count = 0; count < plan.length; count++)
          await new Promise((resolve) => setImmediate(resolve))
        this.#busy.delete(busy)
        return
      }
      case 'gate': {
        const { promise, resolve, reject } = Promise.withResolvers<void>()
        const attempt: OpenAttempt = {
          process,
          runId: step.id.slice(0, step.id.lastIndexOf(':')),
          rank: name,
          finish: resolve,
          abandon: () => reject(new FatalError('The simulation is over')),
        }
        this.open.add(attempt)
        return promise.finally(() => this.open.delete(attempt))
      }
    }
  }

  #check(
    { name, after }: StepInput,
    { process, step }: { process: SimulatedProcess; step: StepContext }
  ): void {
    this.begun++
    if (process.state === 'outdated')
      this.faults.push(`${name} was begun under a lease that was lost`)
    const colon = step.id.lastIndexOf(':')
    const runId = step.id.slice(0, colon)
    const seq = Number(step.id.slice(colon + 1))
    const recorded = this.#database.history.live(runId)
    if (process.state === 'alive') {
      if (recorded.some((record) => record.seq === seq))
        this.faults.push(`${name} was executed though it is recorded`)
      if (after !== null && !isRecorded(recorded, after))
        this.faults.push(`${name} was begun before ${after}, which the body had seen, was recorded`)
      const wait = this.#database.waits.of(runId).find((open) => open.seq === seq)
      if (wait && step.attempt <= wait.attempts)
        this.faults.push(`Attempt ${step.attempt} of ${name} was begun though it is noted`)
    }
    const earlier = this.#executions.get(step.id) ?? []
    if (earlier.some((other) => other.process === process && other.attempt === step.attempt))
      this.faults.push(`Attempt ${step.attempt} of ${name} was executed twice by one process`)
    this.#executions.set(step.id, [...earlier, { process, attempt: step.attempt }])
  }
}

/** Whether the history holds what a step of this name came to. */
export function isRecorded(history: readonly HistoryRecord[], name: string): boolean {
  return history.some(
    (record) =>
      record.name === name ||
      record.output?.includes(`"${name} `) ||
      record.error?.includes(`"${name} `)
  )
}

import type { StepMessage, Transport, TransportListener } from '../../src/contracts/transport.ts'
import type { StepOutcome, StepResult } from '../../src/core/dispatch.ts'
import type { HistoryRecord } from '../../src/core/history.ts'
import { decode, encode } from '../../src/core/payload.ts'
import { decodeError, encodeError, serializeError } from '../../src/core/serialized_error.ts'
import { FatalError } from '../../src/errors.ts'
import type { MemoryDatabase } from '../../src/stores/memory/memory_database.ts'
import type { StepInput } from './random_body.ts'
import type { SimulatedProcess } from './simulated_process.ts'
import { isRecorded } from './step_desk.ts'

interface Delivery {
  result: StepResult
  /** How often it was given to a process. */
  count: number
  /** Who has it now, and has not acknowledged it. */
  holder: SimulatedProcess | null
  isAcknowledged: boolean
}

/** Something that can happen, with its weight. */
export type WeightedEvent = [weight: number, happen: () => void]

const MAX_DELIVERIES = 3
const MAX_BEATS = 2

/**
 * Workers that execute what was sent to them, in any order, and answer; messages and answers are lost, late and doubled.
 * It checks, as each message comes, that it may: nothing that is recorded is sent, and nothing goes out before the wait
 * that stands for it, and what it depends on, are durable.
 */
export class StepPost {
  readonly faults: string[] = []
  /** Messages that came. */
  sent = 0
  #database: MemoryDatabase
  #listeners = new Map<SimulatedProcess, TransportListener>()
  #messages = new Set<StepMessage>()
  #deliveries: Delivery[] = []
  #beats = new Map<StepMessage, number>()
  #ids = new Set<string>()

  constructor(database: MemoryDatabase) {
    this.#database = database
  }

  transport(process: SimulatedProcess): Transport {
    return {
      open: async (listener) => void this.#listeners.set(process, listener),
      send: async (messages) => {
        for (const message of messages) this.#accept(message, process)
      },
      close: async () => {},
    }
  }

  /** What can happen to messages and answers now. */
  events(processes: readonly SimulatedProcess[]): WeightedEvent[] {
    const listening = processes.filter(({ state }) => state === 'alive')
    const events: WeightedEvent[] = []
    for (const message of this.#messages) {
      events.push([2, () => this.#execute(message)], [0.4, () => this.#messages.delete(message)])
      for (const process of listening)
        if ((this.#beats.get(message) ?? 0) < MAX_BEATS)
          events.push([0.3, () => this.#beat(message, process)])
    }
    for (const delivery of this.#deliveries) {
      const isHeld = delivery.holder?.state === 'alive'
      if (isHeld || delivery.count >= MAX_DELIVERIES) continue
      const weight = delivery.isAcknowledged ? 0.3 : 2
      for (const process of listening) events.push([weight, () => this.#deliver(delivery, process)])
    }
    return events
  }

  /** What the runs have recorded of steps that were sent is what somebody has answered. */
  checkRecords(): void {
    for (const { id } of this.#database.runs.rows())
      for (const record of this.#database.history.live(id))
        if (record.status !== 'abandoned' && !this.#isAnswered(id, record))
          this.faults.push(`${id}: nobody has answered what ${record.name} came to`)
  }

  #isAnswered(runId: string, { kind, seq, attempts, output, error }: HistoryRecord): boolean {
    const isOfIt = (key: { runId: string; seq: number }) => key.runId === runId && key.seq === seq
    if (kind !== 'step' || !this.#sentFor(runId, seq)) return true
    if (error !== null && decodeError(error).code === 'step_lost') return true
    return this.#deliveries.some(({ result, count }) => {
      if (count === 0 || !isOfIt(result)) return false
      const { outcome, attempt } = result
      if (outcome.status === 'completed') return outcome.output === output
      return attempt === attempts && outcome.error === error
    })
  }

  #sentFor(runId: string, seq: number): boolean {
    return this.#ids.has(`${runId}:${seq}`)
  }

  #accept(message: StepMessage, process: SimulatedProcess): void {
    const { runId, seq, attempt, dispatchId, stepId } = message
    const { name, after } = decode(message.input) as StepInput
    if (this.#ids.has(dispatchId)) this.faults.push(`${name} was sent twice as ${dispatchId}`)
    this.#ids.add(dispatchId).add(stepId)
    this.#messages.add(message)
    this.sent++
    if (process.state !== 'alive') return
    const recorded = this.#database.history.live(runId)
    if (recorded.some((record) => record.seq === seq))
      this.faults.push(`${name} was sent though it is recorded`)
    if (after !== null && !isRecorded(recorded, after))
      this.faults.push(`${name} was sent before ${after}, which the body had seen, was recorded`)
    const wait = this.#database.waits.of(runId).find((open) => open.seq === seq)
    if (wait?.dispatch?.id !== dispatchId) this.faults.push(`${name} was sent without its wait`)
    if (wait?.attempts !== attempt - 1)
      this.faults.push(`Attempt ${attempt} of ${name} was sent after ${wait?.attempts} failures`)
  }

  #execute(message: StepMessage): void {
    this.#messages.delete(message)
    const { runId, seq, generation, attempt, dispatchId } = message
    const outcome = outcomeOf(message)
    this.#deliveries.push({
      result: { runId, seq, generation, attempt, dispatchId, outcome },
      ...{ count: 0, holder: null, isAcknowledged: false },
    })
  }

  #deliver(delivery: Delivery, process: SimulatedProcess): void {
    const listener = this.#listeners.get(process)
    if (!listener) return
    delivery.count++
    delivery.holder = process
    const give = (): Promise<void> =>
      listener.result(delivery.result).then(
        () => {
          if (process.state !== 'alive') return
          delivery.isAcknowledged = true
          delivery.holder = null
        },
        () => (process.state === 'alive' ? give() : undefined)
      )
    void give()
  }

  #beat(message: StepMessage, process: SimulatedProcess): void {
    this.#beats.set(message, (this.#beats.get(message) ?? 0) + 1)
    const { runId, seq, generation, attempt } = message
    void this.#listeners.get(process)?.heartbeat({ runId, seq, generation, attempt })
  }
}

/** What an attempt comes to, whoever executes it and how often. */
function outcomeOf({ attempt, input }: StepMessage): StepOutcome {
  const { name, plan } = decode(input) as StepInput
  if (attempt > plan.failures) return { status: 'completed', output: encode(`${name} done`) }
  const message = `${name} failed`
  const error = plan.fatal ? new FatalError(message) : new Error(message)
  return { status: 'failed', error: encodeError(serializeError(error)) }
}

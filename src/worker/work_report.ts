import type { RunEvents, RunEventName } from '../engine/events.ts'

/** What happened to runs since the report began. */
export interface WorkCounts {
  started: number
  completed: number
  failed: number
  blocked: number
  stalled: number
}

/** One thing that a worker did, under the name of its event. */
export type WorkEvent = { [Name in RunEventName]: { event: Name } & RunEvents[Name] }[RunEventName]

/** The events that a report listens to: an engine. */
interface EmitsRunEvents {
  on<Name extends RunEventName>(name: Name, listener: (event: RunEvents[Name]) => void): () => void
}

const KINDS = [
  'started',
  'completed',
  'failed',
  'blocked',
  'stalled',
] as const satisfies (keyof WorkCounts)[]

/** How often the summary comes. */
const SUMMARY_MS = 30_000

/**
 * Tells what a worker does: one event per run started, completed, failed, blocked or stalled, and every 30 s a summary
 * if something happened since the last one.
 */
export class WorkReport {
  readonly counts: WorkCounts = { started: 0, completed: 0, failed: 0, blocked: 0, stalled: 0 }
  readonly #leaves: (() => void)[]
  readonly #timer: NodeJS.Timeout
  #summarised = ''

  constructor(
    engine: EmitsRunEvents,
    output: { event(event: WorkEvent): void; summary(counts: WorkCounts): void }
  ) {
    this.#leaves = KINDS.map((kind) =>
      engine.on(`run.${kind}`, (event) => {
        this.counts[kind]++
        output.event({ event: `run.${kind}`, ...event } as WorkEvent)
      })
    )
    this.#summarised = JSON.stringify(this.counts)
    this.#timer = setInterval(() => this.#summarise(output), SUMMARY_MS)
    this.#timer.unref()
  }

  #summarise(output: { summary(counts: WorkCounts): void }): void {
    const now = JSON.stringify(this.counts)
    if (now === this.#summarised) return
    this.#summarised = now
    output.summary(this.counts)
  }

  /** Idempotent. */
  stop(): void {
    clearInterval(this.#timer)
    for (const leave of this.#leaves.splice(0)) leave()
  }
}

import { clearInterval, setInterval } from 'node:timers'
import type { EmitsRunEvents, WorkEvent } from './run_log.ts'

const KINDS = [
  'started',
  'completed',
  'routed',
  'unrouted',
  'failed',
  'cancelled',
  'blocked',
  'stalled',
] as const

/** What happened to runs since the report began. */
export type WorkCounts = Record<(typeof KINDS)[number], number>

/** Where a report goes. */
export interface WorkOutput {
  event(event: WorkEvent): void
  summary(counts: WorkCounts): void
}

/** How often the summary comes. */
const SUMMARY_MS = 30_000

/**
 * Tells what a worker does: one event for each thing that happens to a run, and every 30 s a summary if
 * something happened since the last one.
 */
export class WorkReport {
  readonly counts: WorkCounts = noCounts()
  readonly #output: WorkOutput
  readonly #leaves: (() => void)[]
  readonly #timer: NodeJS.Timeout
  #summarised = ''

  constructor(engine: EmitsRunEvents, output: WorkOutput) {
    this.#output = output
    this.#leaves = KINDS.map((kind) =>
      engine.on(`run.${kind}`, (event) => {
        this.counts[kind]++
        output.event({ event: `run.${kind}`, ...event } as WorkEvent)
      })
    )
    this.#summarised = JSON.stringify(this.counts)
    this.#timer = setInterval(() => this.#summarise(), SUMMARY_MS)
    this.#timer.unref()
  }

  #summarise(): void {
    const now = JSON.stringify(this.counts)
    if (now === this.#summarised) return
    this.#summarised = now
    this.#output.summary(this.counts)
  }

  /** Ends with a summary, if something happened since the last one. Idempotent. */
  stop(): void {
    clearInterval(this.#timer)
    for (const leave of this.#leaves.splice(0)) leave()
    this.#summarise()
  }
}

function noCounts(): WorkCounts {
  return Object.fromEntries(KINDS.map((kind) => [kind, 0])) as WorkCounts
}

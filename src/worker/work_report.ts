import type { EmitsRunEvents, WorkEvent } from './run_log.ts'

/** What happened to runs since the report began. */
export interface WorkCounts {
  started: number
  completed: number
  failed: number
  blocked: number
  stalled: number
}

/** Where a report goes. */
export interface WorkOutput {
  event(event: WorkEvent): void
  summary(counts: WorkCounts): void
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

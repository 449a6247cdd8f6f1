import timers from 'node:timers'
import { RUN_EVENT_NAMES, type RunEventName } from '../engine/events.ts'
import { BlockedRuns } from './blocked_runs.ts'
import { type EmitsRunEvents, type WorkEvent, workEvent } from './run_log.ts'

type EventKind = RunEventName extends `run.${infer Kind}` ? Kind : never

/** What happened to runs since the report began, by the names of the events without `run.`. */
export type WorkCounts = Record<EventKind, number>

/** Where a report goes. */
export interface WorkOutput {
  event(event: WorkEvent): void
  summary(counts: WorkCounts): void
}

/** How often the summary comes. */
const SUMMARY_MS = 30_000

/**
 * Tells what a worker does: one event for each thing that happens to a run, and every 30 s a summary if
 * something happened since the last one. A blocked run that is tried again in vain is none.
 */
export class WorkReport {
  readonly counts: WorkCounts = noCounts()
  readonly #output: WorkOutput
  readonly #leaves: (() => void)[]
  readonly #timer: NodeJS.Timeout
  readonly #clock: Pick<typeof timers, 'setInterval' | 'clearInterval'>
  readonly #blocked = new BlockedRuns()
  #summarised = ''

  /** @param clock what the intervals are measured by */
  constructor(
    engine: EmitsRunEvents,
    output: WorkOutput,
    clock: Pick<typeof timers, 'setInterval' | 'clearInterval'> = timers
  ) {
    this.#output = output
    this.#clock = clock
    this.#leaves = RUN_EVENT_NAMES.map((name) =>
      engine.on(name, (facts) => {
        const event = workEvent(name, facts)
        if (!this.#isNews(event)) return
        this.counts[kindOf(name)]++
        output.event(event)
      })
    )
    this.#summarised = JSON.stringify(this.counts)
    this.#timer = clock.setInterval(() => this.#summarise(), SUMMARY_MS)
    this.#timer.unref()
  }

  #isNews(event: WorkEvent): boolean {
    switch (event.event) {
      case 'run.blocked':
        return this.#blocked.note(event.runId, event.error)
      case 'run.completed':
      case 'run.failed':
      case 'run.cancelled':
        this.#blocked.over(event.runId)
        return true
      case 'run.started':
      case 'run.routed':
      case 'run.unrouted':
      case 'run.stalled':
        return true
    }
  }

  #summarise(): void {
    const now = JSON.stringify(this.counts)
    if (now === this.#summarised) return
    this.#summarised = now
    this.#output.summary(this.counts)
  }

  /** Ends with a summary, if something happened since the last one. Idempotent. */
  stop(): void {
    this.#clock.clearInterval(this.#timer)
    for (const leave of this.#leaves.splice(0)) leave()
    this.#summarise()
  }
}

function kindOf(name: RunEventName): EventKind {
  return name.slice('run.'.length) as EventKind
}

function noCounts(): WorkCounts {
  return Object.fromEntries(RUN_EVENT_NAMES.map((name) => [kindOf(name), 0])) as WorkCounts
}

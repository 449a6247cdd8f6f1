import { errorLine } from '../core/error_line.ts'
import type { RunEventName, RunEvents } from '../engine/events.ts'
import type { RunLogger } from '../types/step.ts'
import { BlockedRuns } from './blocked_runs.ts'

/** One thing that happened to a run, under the name of its event. */
export type WorkEvent = { [Name in RunEventName]: { event: Name } & RunEvents[Name] }[RunEventName]

/** Where events come from: an engine. */
export interface EmitsRunEvents {
  on<Name extends RunEventName>(name: Name, listener: (event: RunEvents[Name]) => void): () => void
}

/** The facts of an event under its name. */
export function workEvent<Name extends RunEventName>(
  event: Name,
  facts: RunEvents[Name]
): WorkEvent {
  // The type of the pair is one of the union's for each name, which cannot be said of all names at once.
  return { event, ...facts } as WorkEvent
}

const TROUBLE = ['run.failed', 'run.blocked', 'run.stalled', 'run.unrouted'] as const

/** Whether something has gone wrong with the run. */
export function isTrouble({ event }: WorkEvent): boolean {
  return (TROUBLE as readonly string[]).includes(event)
}

/** Tells a logger what happens to runs: one line each, which holds all there is to know at a glance. */
export class RunLog {
  #log: RunLogger
  #hasFields: boolean
  #blocked = new BlockedRuns()

  /**
   * @param params.fields also passes the facts as an object, for logs that are searched. Where lines are printed for
   * people, it would take a line per fact.
   */
  constructor(params: { log: RunLogger; fields: boolean }) {
    this.#log = params.log
    this.#hasFields = params.fields
  }

  /** Tells what goes wrong with the runs of this process, as long as there is the engine. */
  followTrouble(engine: EmitsRunEvents): void {
    for (const name of TROUBLE) engine.on(name, (facts) => this.write(workEvent(name, facts)))
  }

  write(event: WorkEvent): void {
    const { runId, workflow } = event
    const line = `${event.event.replace('.', ' ')}: ${workflow} ${runId}`
    switch (event.event) {
      case 'run.started':
        return this.#say('info', event, line)
      case 'run.completed':
        this.#blocked.over(runId)
        return this.#say('info', event, line)
      case 'run.failed':
        this.#blocked.over(runId)
        return this.#say(
          'error',
          event,
          `run ${event.status}: ${workflow} ${runId}: ${errorLine(event.error)}`
        )
      case 'run.cancelled':
        this.#blocked.over(runId)
        return this.#say('info', event, line)
      case 'run.routed':
        return this.#say(
          'info',
          event,
          `${line}: to ${event.handlerRunId}: ${errorLine(event.error)}`
        )
      case 'run.unrouted':
        return this.#say('warn', event, `${line}: ${event.reason}`)
      case 'run.blocked':
        if (!this.#blocked.note(runId, event.error)) return
        return this.#say('error', event, `${line}: ${errorLine(event.error)}`)
      case 'run.stalled':
        return this.#say('warn', event, `${line}: it neither asks nor awaits anything of ctx`)
    }
  }

  #say(level: 'info' | 'warn' | 'error', { event: _, ...facts }: WorkEvent, line: string): void {
    if (this.#hasFields) this.#log[level](facts, line)
    else this.#log[level](line)
  }
}

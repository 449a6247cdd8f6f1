import { isInFlight } from '../core/dispatch.ts'
import type { HistoryRecord } from '../core/history.ts'
import { decode, encode } from '../core/payload.ts'
import type { StepContext } from '../types/step.ts'
import { isAtWork, type OpenCall } from './open_call.ts'
import type { Outcome, StepTask } from './operation.ts'

/** Something the body did, and how to undo it. */
export interface Compensable {
  seq: number
  name: string
  task: Pick<StepTask, 'name' | 'work' | 'call'>
}

/** The calls of a body that say how they are undone. */
export class Compensables {
  #calls: OpenCall[] = []
  /** Whether those that were delivered here have succeeded, by position. */
  #hasSucceeded = new Map<number, boolean>()

  called(call: OpenCall): void {
    if (call.operation.compensation) this.#calls.push(call)
  }

  delivered(call: OpenCall, { status }: Outcome): void {
    if (call.operation.compensation) this.#hasSucceeded.set(call.seq, status === 'completed')
  }

  /** Whether the body has done something that a failure would have to undo, or may still be doing it. */
  get areAny(): boolean {
    return this.#calls.some((call) => isAtWork(call) || this.#hasSucceeded.get(call.seq))
  }

  /**
   * What is to be undone, the latest delivery first, before that what was delivered to nobody.
   *
   * @param params.ofUnrecorded also operations of which nothing is recorded: they may have been at work.
   * Steps that are in flight elsewhere are among them in any case
   * @param params.recordAt what is recorded at a position
   */
  list(params: {
    ofUnrecorded: boolean
    recordAt: (seq: number) => HistoryRecord | undefined
  }): Compensable[] {
    const recordOf = ({ seq }: OpenCall) => params.recordAt(seq)
    const rank = (call: OpenCall) => recordOf(call)?.ordinal ?? Infinity
    return this.#calls
      .filter((call) => {
        const record = recordOf(call)
        return record ? record.status !== 'failed' : params.ofUnrecorded || isInFlight(call)
      })
      .sort((a, b) => (rank(a) === rank(b) ? b.seq - a.seq : rank(b) - rank(a)))
      .map((call) => compensable(call, recordOf(call)?.output ?? null))
  }
}

function compensable({ seq, name, operation }: OpenCall, output: string | null): Compensable {
  const how = operation.compensation!
  if ('step' in how) {
    const work = { input: output ?? encode(undefined) }
    return { seq, name, task: { name: how.step, work, call: {} } }
  }
  const value = output === null ? undefined : decode(output)
  const work = { local: (step: StepContext) => how.undo(value, step) }
  return { seq, name, task: { name: `compensation of ${name}`, work, call: {} } }
}

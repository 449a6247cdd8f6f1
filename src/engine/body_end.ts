import { setImmediate } from 'node:timers'
import { setTimeout as delay } from 'node:timers/promises'
import type { LoadedRun } from '../contracts/store.ts'
import type { AnswerTo, ChangeSet, TurnEnd } from '../core/change_set.ts'
import { isInFlight } from '../core/dispatch.ts'
import type { NewRecord } from '../core/history.ts'
import { encode } from '../core/payload.ts'
import { serializeError } from '../core/serialized_error.ts'
import { failedCode } from '../core/unwinding.ts'
import type { Outcome } from '../replay/operation.ts'
import type { Turn, TurnWants } from '../replay/turn.ts'
import type { BodyOutcome } from '../replay/turn_state.ts'
import type { RunLogger } from '../types/step.ts'
import type { FailureRouting } from './failure_routing.ts'
import { notAwaitedError, notBegunMessage } from './faults.ts'
import type { RunWriter, TurnEnding } from './run_writer.ts'
import type { StepRunner } from './step_runner.ts'

const ABORT_GRACE_MS = 5_000

interface BodyEndParams {
  turn: Turn
  writer: RunWriter
  steps: StepRunner
  routing: FailureRouting
  maxPayloadBytes: number
  log: RunLogger
  /** Encoded input of the run. */
  input: string
}

/** What becomes of a run whose body is over: it has completed or failed, is to be undone, or follows a handler run. */
export class BodyEnd {
  #params: BodyEndParams
  /** Outcomes of steps that came after the body had ended. */
  #late = new Map<number, Outcome>()
  /** What the database has refused to take; null = nothing. */
  #refused: TurnWants | null = null

  constructor(params: BodyEndParams) {
    this.#params = params
  }

  /** A step that was still at work when the body ended has come to its outcome. */
  lateOutcome(seq: number, outcome: Outcome): void {
    this.#late.set(seq, outcome)
  }

  async conclude(given: TurnWants, outcome: BodyOutcome): Promise<TurnEnding> {
    const { steps, turn, writer, routing, input } = this.#params
    const wants = this.#withRefused(given)
    for (const seq of wants.abandoned) steps.abandon(seq)
    const end = this.#endOf(outcome)
    if (end.kind === 'complete') return this.#end(wants, end)
    if (turn.hasCompensables) return this.#unwind(wants, end)
    const routed = await routing.settle(writer.row, { failure: end, input })
    const children = [...wants.children, ...(routed.changes.children ?? [])]
    const opened = [...(routed.changes.opened ?? [])]
    return this.#end({ ...this.#closing(wants), children, opened }, routed.end)
  }

  /** The body is not run with an input that does not fit. What it had done before is undone. */
  async refuseInput(
    error: unknown,
    { history, waits, seenInbox }: Pick<LoadedRun, 'history' | 'waits'> & { seenInbox: number }
  ): Promise<TurnEnding> {
    const { writer, routing, input } = this.#params
    const failure = writer.failWith(serializeError(error))
    const inFlight = waits.filter(isInFlight)
    const closed = waits.filter((wait) => !inFlight.includes(wait)).map(({ seq }) => seq)
    const changes = { closed, seenInbox }
    if (history.length > 0 || inFlight.length > 0) return writer.end(changes, unwind(failure))
    const routed = await routing.settle(writer.row, { failure, input })
    return writer.end({ ...changes, ...routed.changes }, routed.end)
  }

  /**
   * What a write that was not applied comes to. Where the database refuses the rows themselves, the body fails by that,
   * and what it has done is undone; null = the turn goes on to this end.
   */
  async unwritten(wants: TurnWants, answer: AnswerTo<ChangeSet>): Promise<TurnEnding | null> {
    const { turn, writer } = this.#params
    if (answer.type !== 'refused' || this.#refused) return writer.unwritten(answer)
    this.#refused = wants
    if (turn.isOver) return this.conclude(emptied(wants), { status: 'failed', error: answer.error })
    turn.fail(answer.error)
    return null
  }

  async #end(wants: TurnWants, end: Exclude<TurnEnd, { kind: 'continue' }>): Promise<TurnEnding> {
    const { writer } = this.#params
    const answer = await writer.write(wants, end)
    if (answer.type !== 'committed') return (await this.unwritten(wants, answer)) ?? 'lost'
    if (end.kind === 'complete') this.#warnOfUnbegun()
    return writer.ended(wants, end)
  }

  /** Nothing else tells of them: they are in no history. */
  #warnOfUnbegun(): void {
    const { turn, writer, log } = this.#params
    if (turn.unbegun.length === 0) return
    const { runId, workflow } = writer.facts
    log.warn({ runId, workflow }, notBegunMessage(writer.facts, turn.unbegun))
  }

  /** Steps that have no record were executed all the same: how they ended is not known any more. */
  #withRefused(wants: TurnWants): TurnWants {
    if (!this.#refused) return wants
    const { records, closed, returned } = this.#refused
    const steps = records.filter(({ kind }) => kind === 'local_step' || kind === 'step')
    return {
      ...wants,
      records: [...steps.map(abandoned), ...wants.records],
      closed: [...closed, ...wants.closed],
      returned: [...returned, ...wants.returned],
    }
  }

  /** The body is over, and the run is not: what comes for its open waits goes to others from now on. */
  #closing(wants: TurnWants): TurnWants {
    return { ...wants, opened: [], closed: [...wants.closed, ...this.#params.turn.openWaits] }
  }

  /** Compensations come after the steps they undo: those in flight, now aborted, are given a little time to return. */
  async #unwind(wants: TurnWants, failure: TurnEnd & { kind: 'fail' }): Promise<TurnEnding> {
    if (wants.abandoned.length > 0) {
      const grace = new AbortController()
      const late = delay(ABORT_GRACE_MS, null, { signal: grace.signal }).catch(() => {})
      await Promise.race([this.#params.steps.quiet(), late])
      grace.abort()
      await new Promise((resolve) => setImmediate(resolve))
    }
    const records = wants.records.map((record) => {
      const outcome = record.status === 'abandoned' ? this.#late.get(record.seq) : undefined
      return outcome ? { ...record, ...outcome } : record
    })
    return this.#end({ ...this.#closing(wants), records }, unwind(failure))
  }

  #endOf(outcome: BodyOutcome): TurnEnd & { kind: 'complete' | 'fail' } {
    const { writer, maxPayloadBytes } = this.#params
    if (outcome.status === 'failed') return writer.failWith(serializeError(outcome.error))
    if (outcome.status === 'not_awaited') return writer.failWith(notAwaitedError(outcome))
    try {
      const output = encode(outcome.value, { label: 'output', maxBytes: maxPayloadBytes })
      return { kind: 'complete', output }
    } catch (error) {
      return writer.failWith(serializeError(error))
    }
  }
}

function unwind({ error, errorCode }: TurnEnd & { kind: 'fail' }) {
  return { kind: 'unwind' as const, error, errorCode: failedCode(errorCode) }
}

function abandoned(record: NewRecord): NewRecord {
  return { ...record, ordinal: null, status: 'abandoned', output: null, error: null }
}

function emptied(wants: TurnWants): TurnWants {
  const nothing = { records: [], opened: [], closed: [], returned: [], children: [], signals: [] }
  return { ...wants, ...nothing, orders: [], starts: [], abandoned: [] }
}

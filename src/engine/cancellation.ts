import type { AnswerTo, CancelWrite } from '../core/change_set.ts'
import { encodeError } from '../core/serialized_error.ts'
import { CANCELLED } from '../core/unwinding.ts'
import type { CommitQueue } from './commit_queue.ts'
import type { RunEventEmitter } from './events.ts'

type Outcome = AnswerTo<CancelWrite>['outcome']

/** Ends runs from outside, whoever executes them, with the children they await. */
export class Cancellation {
  #commits: CommitQueue
  #events: RunEventEmitter

  constructor(params: { commits: CommitQueue; events: RunEventEmitter }) {
    this.#commits = params.commits
    this.#events = params.events
  }

  /** Because somebody asked for it. With `compensate` the run undoes its steps first. */
  cancel(runId: string, { compensate, reason }: { compensate: boolean; reason: string }) {
    return this.#end(runId, { code: CANCELLED, message: reason, compensate, ifOverdue: false })
  }

  /** Because its execution time is over, if it still is: the run may have gone on meanwhile. */
  timeOut(runId: string): Promise<Outcome> {
    const message = 'The run took longer than its executionTimeout'
    return this.#end(runId, {
      code: 'execution_timeout',
      message,
      compensate: false,
      ifOverdue: true,
    })
  }

  async #end(
    runId: string,
    params: { code: string; message: string; compensate: boolean; ifOverdue: boolean }
  ): Promise<Outcome> {
    const { code, message, compensate, ifOverdue } = params
    const error = encodeError({ name: 'Cancelled', message, code, retryable: false })
    const terms = { compensate, ifOverdue, error, errorCode: code }
    const write = { type: 'cancel' as const, runId, ...terms }
    const answer = await this.#commits.write(write)
    for (const { id, workflow, version, namespace } of answer.runs ?? [])
      this.#events.emit('run.cancelled', { runId: id, workflow, version, namespace })
    return answer.outcome
  }
}

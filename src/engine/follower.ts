import type { LoadedRun } from '../contracts/store.ts'
import { handoffSeq, type NewRecord } from '../core/history.ts'
import type { RunRow } from '../core/run.ts'
import { outcomeOfChild } from '../replay/operations/child.ts'
import type { Execution, ExecutionParams } from './execution.ts'
import { RunWriter, type TurnEnding } from './run_writer.ts'
import { decodeError, serializeError } from '../core/serialized_error.ts'

/** Settles a run whose failure was handed on with the outcome of its handler run. The body is never run again. */
export class Follower implements Execution {
  #params: ExecutionParams
  #writer: RunWriter

  constructor(row: RunRow, params: ExecutionParams) {
    this.#params = params
    this.#writer = new RunWriter(row, params)
  }

  get row(): RunRow {
    return this.#writer.row
  }

  async run(row: RunRow, loaded: LoadedRun): Promise<TurnEnding> {
    this.#writer.row = row
    this.#writer.clock.read(loaded.now)
    const seq = handoffSeq(row.handoffs - 1)
    const wait = loaded.waits.find((open) => open.seq === seq)
    const seenInbox = loaded.inbox.at(-1)?.no ?? row.inboxSeq
    const outcome = await this.#outcome(row, seq)
    if (!outcome) {
      const taken = loaded.inbox.some((entry) => entry.kind === 'child' && entry.event === 'taken')
      if (taken)
        return this.#writer.end({ seenInbox }, this.#writer.failWith(idTaken(wait?.target)))
      return this.#writer.end(
        { seenInbox },
        { kind: 'suspend', dueAt: null, dueIn: null, needs: 1 }
      )
    }
    const record: NewRecord = {
      ...{ seq, kind: 'handoff' as const, name: wait?.name ?? 'onError', after: 0, ordinal: null },
      status: outcome.status,
      attempts: 1,
      output: outcome.status === 'completed' ? outcome.output : null,
      error: outcome.status === 'failed' ? outcome.error : null,
      durationMs: Math.max(0, loaded.now - (wait?.openedAt ?? loaded.now)),
    }
    const changes = { records: [record], closed: [seq], seenInbox }
    if (outcome.status === 'completed')
      return this.#writer.end(changes, { kind: 'complete', output: outcome.output })
    return this.#writer.end(changes, this.#writer.failWith(decodeError(outcome.error)))
  }

  drain(): void {}
  release(): void {}
  discard(): void {}
  async quiet(): Promise<void> {}

  async #outcome(row: RunRow, seq: number) {
    const [handler] = await this.#params.store.childOutcomes({ runId: row.id, seq })
    return handler ? outcomeOfChild(handler, 'handler') : null
  }
}

function idTaken(runId: string | null | undefined) {
  const message = `The handler run could not be started: another run has the id "${runId ?? 'unknown'}"`
  return { ...serializeError(new Error(message)), code: 'run_id_taken' }
}

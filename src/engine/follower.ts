import type { LoadedRun } from '../contracts/store.ts'
import { type ChildOutcome, handoffSeq, type NewRecord } from '../core/history.ts'
import { isTerminal, type RunRow } from '../core/run.ts'
import { decodeError, type SerializedError } from '../core/serialized_error.ts'
import type { Execution, ExecutionParams } from './execution.ts'
import { readPersistently } from './persistent_read.ts'
import { type Changes, RunWriter, type TurnEnding } from './run_writer.ts'

/** Settles a run whose failure was handed on with the outcome of its handler run. The body is never run again. */
export class Follower implements Execution {
  readonly resident = null
  #params: ExecutionParams
  #writer: RunWriter
  #isWanted = true

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
    const outcomes = await this.#outcomes(seq)
    if (!outcomes) return this.#writer.end({}, { kind: 'release' })
    const [handler] = outcomes
    if (!handler || !isTerminal(handler.status)) {
      const isTaken = loaded.inbox.some(
        (entry) => entry.kind === 'child' && entry.event === 'taken'
      )
      if (isTaken) return this.#leaveUnrouted({ seenInbox }, loaded, wait?.target ?? 'unknown')
      const end = { kind: 'suspend', dueAt: null, dueIn: null, needs: 1 } as const
      return this.#writer.end({ seenInbox }, end)
    }
    const { output } = handler
    const failure = output === null ? this.#writer.failWith(errorOf(handler)) : null
    const record: NewRecord = {
      ...{ seq, kind: 'handoff' as const, name: wait?.name ?? `onError:${handler.runId}` },
      ...{ after: 0, ordinal: null, attempts: 1, output },
      status: failure ? 'failed' : 'completed',
      error: failure?.error ?? null,
      durationMs: Math.max(0, loaded.now - (wait?.openedAt ?? loaded.now)),
    }
    const changes = { records: [record], closed: [seq], seenInbox }
    return this.#writer.end(changes, failure ?? { kind: 'complete', output: output! })
  }

  /** The run ends with the failure that was to be handed on. */
  #leaveUnrouted(changes: Changes, loaded: LoadedRun, handlerId: string): Promise<TurnEnding> {
    const error = decodeError(loaded.error!)
    const reason = `the handler run could not be started: another run has the id "${handlerId}"`
    this.#params.events.emit('run.unrouted', { ...this.#writer.facts, error, reason })
    return this.#writer.end(changes, this.#writer.failWith(error))
  }

  /** Tried again until it is known; undefined once the run is no longer to be executed here. */
  #outcomes(seq: number): Promise<ChildOutcome[] | undefined> {
    const { store, log } = this.#params
    const read = () => store.childOutcomes({ runId: this.row.id, seq })
    const isWanted = () => this.#isWanted
    return readPersistently(read, { what: 'The outcome of a handler run', isWanted, log })
  }

  drain(): void {
    this.#isWanted = false
  }

  abort(): void {
    this.#isWanted = false
  }

  release(): void {
    this.#isWanted = false
  }

  discard(): void {
    this.#isWanted = false
  }

  async quiet(): Promise<void> {}
}

/** Its error as it is: the run ends with that of its handler, and not with one about it. */
function errorOf({ status, error }: ChildOutcome): SerializedError {
  return error === null
    ? { name: 'Error', message: `The handler run is ${status}`, code: 'child_failed' }
    : decodeError(error)
}

import type { AnswerTo, ChangeSet, TurnEnd } from '../core/change_set.ts'
import { decode } from '../core/payload.ts'
import type { RunRow } from '../core/run.ts'
import { encodeError, type SerializedError, serializeError } from '../core/serialized_error.ts'
import type { ResolvedOptions } from '../options.ts'
import type { CommitQueue } from './commit_queue.ts'
import type { RunEventEmitter } from './events.ts'
import type { Registry } from './registry.ts'
import { StoreClock } from './store_clock.ts'

/**
 * How a run left the hands of what executed it. `unwinding` goes on under the same lease, with its compensations;
 * `following` waits for its handler run.
 */
export type TurnEnding =
  'suspended' | 'ended' | 'blocked' | 'released' | 'lost' | 'unwinding' | 'following'

/** What a write may hold beside its end; what is left out is empty. */
export type Changes = Partial<Omit<ChangeSet, 'type' | 'runId' | 'token' | 'end'>>

export interface RunWriterParams {
  commits: CommitQueue
  events: RunEventEmitter
  options: Pick<ResolvedOptions, 'maxPayloadBytes'>
  registry: Pick<Registry, 'reloads'>
  inDevelopment: boolean
}

const FIRST_BLOCK_RETRY_MS = 2_000
const LAST_BLOCK_RETRY_MS = 300_000
const FOREIGN_RETRY_MS = 86_400_000

/** One write of a run, under the token of its lease. */
export function changeSet(
  { runId, token }: { runId: string; token: number },
  changes: Changes,
  end: TurnEnd
): ChangeSet {
  return {
    type: 'turn',
    runId,
    token,
    records: changes.records ?? [],
    opened: changes.opened ?? [],
    closed: changes.closed ?? [],
    seenInbox: changes.seenInbox ?? 0,
    returned: changes.returned ?? [],
    children: changes.children ?? [],
    signals: changes.signals ?? [],
    end,
  }
}

/** Writes one run under its lease, and tells what its ends come to. */
export class RunWriter {
  readonly clock = new StoreClock()
  row: RunRow
  #params: RunWriterParams
  #reloads = 0

  constructor(row: RunRow, params: RunWriterParams) {
    this.row = row
    this.#params = params
  }

  get facts() {
    const { id, workflow, version, namespace } = this.row
    return { runId: id, workflow, version, namespace }
  }

  /** The body is made, of the code as it is now. */
  bodyBegins(): void {
    this.#reloads = this.#params.registry.reloads
  }

  async write(changes: Changes, end: TurnEnd): Promise<AnswerTo<ChangeSet>> {
    const { id: runId, token } = this.row
    const answer = await this.#params.commits.write(changeSet({ runId, token }, changes, end))
    if (answer.type === 'committed') this.clock.read(answer.now)
    return answer
  }

  /** Writes what ends the turn, and tells it. */
  async end(changes: Changes, end: Exclude<TurnEnd, { kind: 'continue' }>): Promise<TurnEnding> {
    const answer = await this.write(changes, end)
    return answer.type === 'committed' ? this.ended(changes, end) : this.unwritten(answer)
  }

  /** Tells what a write that was applied comes to. */
  ended(changes: Changes, end: Exclude<TurnEnd, { kind: 'continue' }>): TurnEnding {
    switch (end.kind) {
      case 'suspend':
        return 'suspended'
      case 'release':
        return 'released'
      case 'unwind':
        this.row = { ...this.row, phase: 'unwinding', errorCode: end.errorCode }
        return 'unwinding'
      case 'follow': {
        const handlerRunId = changes.children?.at(-1)?.run.id ?? ''
        this.#params.events.emit('run.routed', { ...this.#failure(end.error), handlerRunId })
        return 'following'
      }
      case 'complete':
        this.#params.events.emit('run.completed', this.facts)
        return 'ended'
      case 'fail':
      case 'die': {
        const status = end.kind === 'die' ? 'dead' : 'failed'
        this.#params.events.emit('run.failed', { ...this.#failure(end.error), status })
        return 'ended'
      }
      case 'cancel':
        this.#params.events.emit('run.cancelled', this.facts)
        return 'ended'
      case 'block':
        this.#params.events.emit('run.blocked', this.#failure(end.error))
        return 'blocked'
    }
  }

  /** What a write that was not applied comes to: the lease is gone, or the database refused what the run wrote. */
  async unwritten(answer: AnswerTo<ChangeSet>): Promise<TurnEnding> {
    if (answer.type !== 'refused') return 'lost'
    const failure = this.failWith(serializeError(answer.error))
    const failed = await this.write({}, failure)
    if (failed.type !== 'committed') return 'lost'
    this.#params.events.emit('run.failed', { ...this.#failure(failure.error), status: 'failed' })
    return 'ended'
  }

  failWith(error: SerializedError) {
    const text = encodeError(error, { maxBytes: this.#params.options.maxPayloadBytes })
    return { kind: 'fail' as const, error: text, errorCode: error.code ?? error.name }
  }

  /** The code of this build cannot go on with the run: it is offered again later, and to workers that start. */
  block(changes: Changes, error: SerializedError): Promise<TurnEnding> {
    const age = this.clock.estimate() - (this.row.startedAt ?? this.row.createdAt)
    const lastMs = this.#params.inDevelopment ? FIRST_BLOCK_RETRY_MS : LAST_BLOCK_RETRY_MS
    const growing = Math.min(Math.max(age, FIRST_BLOCK_RETRY_MS), lastMs)
    // What the body awaited has an effect at every attempt, and this code will never do without.
    const isHopeless =
      error.code === 'foreign_await' && this.#reloads === this.#params.registry.reloads
    const retryIn = isHopeless ? FOREIGN_RETRY_MS : growing
    return this.end(changes, { ...this.failWith(error), kind: 'block', retryIn })
  }

  #failure(error: string) {
    return { ...this.facts, error: decode(error) as SerializedError }
  }
}

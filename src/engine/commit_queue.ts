import { setImmediate } from 'node:timers'
import { setTimeout as delay } from 'node:timers/promises'
import type { Answer, AnswerTo, Write } from '../core/change_set.ts'
import type { StepOutcome } from '../core/dispatch.ts'
import { isOwnFault } from '../core/own_fault.ts'
import type { Flush, RunStore } from '../contracts/store.ts'
import { E_ENGINE_STOPPED, E_INTERNAL, E_TOO_MANY_WRITES } from '../errors.ts'
import { inCleanContext } from './clean_context.ts'
import type { RunNews } from './news.ts'

const MAX_BATCH = 500
const MAX_BATCH_CHARACTERS = 8 * 1024 * 1024
/** How much may wait before callers are refused: about 1 GiB. */
const MAX_CHARACTERS = 512 * 1024 * 1024
/** What a write takes beside its payloads. */
const OVERHEAD = 1_000
const FIRST_RETRY_MS = 50
const LAST_RETRY_MS = 2_000

interface Queued {
  write: Write
  characters: number
  /** It was in a batch on which our own code failed, perhaps because of it. */
  isAlone: boolean
  resolve: (answer: Answer) => void
  reject: (error: unknown) => void
}

export interface CommitQueueParams {
  store: () => Promise<RunStore>
  news: RunNews
}

/**
 * Every write of this process, coalesced: one batch is in flight at a time, and what arrives meanwhile is the next.
 * The writes of one event-loop turn share a batch; but to a store elsewhere that was idle goes half of them, so that it
 * works on one half while this process works on the other. While the database is away, a turn's writes are kept and sent
 * again, since they are refused there if the lease has gone meanwhile; writes of callers are rejected with the
 * driver's error. A batch on which our own code fails is sent write by write, and the one that has the fault is
 * rejected with it, of whomever it is: it would fail again.
 */
export class CommitQueue {
  #store: () => Promise<RunStore>
  #news: RunNews
  #queue: Queued[] = []
  /** Of what is queued or in flight. */
  #characters = 0
  #flushing: Promise<void> | null = null
  #isClosed = false

  constructor(params: CommitQueueParams) {
    this.#store = params.store
    this.#news = params.news
  }

  /**
   * Rejects with E_ENGINE_STOPPED once it is closed; writes of callers with E_TOO_MANY_WRITES while too much waits, and
   * with the driver's error where the database refuses their rows.
   */
  write<W extends Write>(write: W): Promise<AnswerTo<W>> {
    if (this.#isClosed) return Promise.reject(new E_ENGINE_STOPPED())
    if (write.type !== 'turn' && this.#characters > MAX_CHARACTERS)
      return Promise.reject(new E_TOO_MANY_WRITES([this.#queue.length]))
    const { promise, resolve, reject } = Promise.withResolvers<AnswerTo<W>>()
    const characters = OVERHEAD + charactersOf(write)
    this.#characters += characters
    // A store answers each write in kind, and one that was held with what it came to.
    const answered = resolve as Queued['resolve']
    this.#queue.push({ write, characters, isAlone: false, resolve: answered, reject })
    this.#flushing ??= inCleanContext(() => this.#flush())
    return promise
  }

  /** Resolves when nothing is queued or in flight, after at most `limitMs` (default: however long that takes). */
  async idle(limitMs?: number): Promise<void> {
    const limit = new AbortController()
    const late = limitMs === undefined ? [] : [delay(limitMs, null, { signal: limit.signal })]
    const idle = this.#whileFlushing(limit.signal)
    await Promise.race([idle, ...late.map((timer) => timer.catch(() => {}))])
    limit.abort()
  }

  /** Waits for what is queued, for at most `graceMs`, and refuses the rest and whatever comes later. */
  async close(graceMs: number): Promise<void> {
    await this.idle(graceMs)
    this.#isClosed = true
    this.#refuse(this.#queue.splice(0), new E_ENGINE_STOPPED())
  }

  async #whileFlushing(signal: AbortSignal): Promise<void> {
    while (this.#flushing && !signal.aborted) await this.#flushing
  }

  async #flush(): Promise<void> {
    do {
      const store = await this.#opened()
      if (store) await this.#send(store)
    } while (this.#queue.length > 0)
    this.#flushing = null
  }

  async #send(store: RunStore): Promise<void> {
    let failures = 0
    let isIdleElsewhere = store.isElsewhere
    while (this.#queue.length > 0) {
      await new Promise((resolve) => setImmediate(resolve))
      const batch = this.#nextBatch(isIdleElsewhere ? Math.ceil(this.#queue.length / 2) : MAX_BATCH)
      isIdleElsewhere = false
      let flush: Flush
      try {
        flush = await store.commit(batch.map(({ write }) => write))
      } catch (error) {
        if (isOwnFault(error)) this.#takeApart(batch, error)
        else {
          this.#keepTurns(batch, error)
          await delay(Math.min(FIRST_RETRY_MS * 2 ** failures++, LAST_RETRY_MS))
        }
        continue
      }
      this.#settle(batch, flush)
      failures = 0
    }
  }

  /** The batch has been applied: whatever is wrong with the answers, it is not sent again. */
  #settle(batch: readonly Queued[], { answers, news }: Flush): void {
    if (answers.length !== batch.length) {
      const what = `the store has given ${answers.length} answers to ${batch.length} writes`
      return this.#refuse(batch, new E_INTERNAL([what]))
    }
    for (const { characters } of batch) this.#characters -= characters
    batch.forEach((queued, index) => this.#answer(queued, answers[index]!))
    // After what follows from the answers: who hears of an end and starts the next run finds its slot free.
    setImmediate(() => this.#news.publish(news, outputsOf(batch, answers)))
  }

  #answer(queued: Queued, answer: Answer): void {
    const { write, resolve, reject } = queued
    if (answer.type === 'held') {
      // It does not keep the next batch waiting.
      answer.answer.then((late) => this.#answer(queued, late), reject)
    } else if (answer.type === 'refused' && write.type !== 'turn' && write.type !== 'result')
      reject(answer.error)
    else resolve(answer)
  }

  async #opened(): Promise<RunStore | null> {
    try {
      return await this.#store()
    } catch (error) {
      this.#refuse(this.#queue.splice(0), error)
      return null
    }
  }

  #refuse(queued: readonly Queued[], error: unknown): void {
    for (const { characters, reject } of queued) {
      this.#characters -= characters
      reject(error)
    }
  }

  #nextBatch(limit: number): Queued[] {
    let characters = 0
    let count = 0
    for (const queued of this.#queue) {
      if (count === Math.min(limit, MAX_BATCH) || (count > 0 && characters > MAX_BATCH_CHARACTERS))
        break
      if (queued.isAlone && count > 0) break
      characters += queued.characters
      count++
      if (queued.isAlone) break
    }
    return this.#queue.splice(0, count)
  }

  /** Sends the writes of a batch one by one; the one at fault is rejected. */
  #takeApart(batch: Queued[], error: unknown): void {
    if (batch.length === 1) return this.#refuse(batch, error)
    for (const queued of batch) queued.isAlone = true
    this.#queue.unshift(...batch)
  }

  #keepTurns(batch: readonly Queued[], error: unknown): void {
    const isKept = ({ write }: Queued) => write.type === 'turn' && !this.#isClosed
    this.#queue.unshift(...batch.filter(isKept))
    const refused = batch.filter((queued) => !isKept(queued))
    this.#refuse(refused, error)
  }
}

/** What the runs return that a batch has completed. A write that was lost ended nothing. */
function outputsOf(batch: readonly Queued[], answers: readonly Answer[]): Map<string, string> {
  const outputs = new Map<string, string>()
  for (const [index, { write }] of batch.entries())
    if (write.type === 'turn' && write.end.kind === 'complete')
      if (answers[index]?.type === 'committed') outputs.set(write.runId, write.end.output)
  return outputs
}

function lengthOf(outcome: StepOutcome): number {
  return outcome.status === 'completed' ? outcome.output.length : outcome.error.length
}

function charactersOf(write: Write): number {
  if (write.type === 'start') return write.run.input.length
  if (write.type === 'signal') return write.signal.payload.length
  if (write.type === 'result') return lengthOf(write.result.outcome)
  if (write.type !== 'turn') return 0
  let characters = 0
  for (const { output, error } of write.records)
    characters += (output?.length ?? 0) + (error?.length ?? 0)
  for (const { run } of write.children) characters += run.input.length
  for (const { payload } of write.signals) characters += payload.length
  return characters + (write.end.kind === 'complete' ? write.end.output.length : 0)
}

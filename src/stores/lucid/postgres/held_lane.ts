import { setTimeout as delay } from 'node:timers/promises'
import type { Answer, FlushNews, Write } from '../../../core/change_set.ts'
import { isOwnFault } from '../../../core/own_fault.ts'
import { the } from '../../../core/present.ts'
import { E_ENGINE_STOPPED, E_STORE_BUSY } from '../../../errors.ts'
import { keyOf } from '../split.ts'
import { type ErrorClass, errorClass } from './error_class.ts'
import type { Doubts } from './doubts.ts'
import { flushGenerically } from './generic_flush.ts'
import { HeldElsewhereError } from './locked_rows.ts'
import type { Notices } from './notices.ts'
import type { PostgresSession } from './session.ts'

const FIRST_PAUSE_MS = 20
const LAST_PAUSE_MS = 250

interface Waiting {
  write: Write
  since: number
  answer: PromiseWithResolvers<Answer>
}

/**
 * Writes whose rows somebody outside holds, a transaction of the application most likely. They are tried one run after
 * the other on a connection of their own, which is closed when there are none. A turn is tried for as long as it takes:
 * its lease decides what becomes of it. A caller is told after the limit, and everybody of a fault of our own.
 */
export class HeldLane {
  #session: () => Promise<PostgresSession>
  #onEmpty: () => Promise<void>
  #notices: Notices
  #limitMs: number
  #onNews: (news: FlushNews) => void
  #warn: (message: string) => void
  /** What has been warned of since there was last nothing to do. */
  #warned = new Set<ErrorClass>()
  #runs = new Map<string, Waiting[]>()
  #doubts: Doubts
  #working: Promise<void> | null = null
  #isClosed = false

  constructor(params: {
    session: () => Promise<PostgresSession>
    /** Called when nothing waits any more. */
    onEmpty: () => Promise<void>
    notices: Notices
    /** What may have been applied by a connection that was lost, here or before it came here. */
    doubts: Doubts
    limitMs: number
    onNews: (news: FlushNews) => void
    warn: (message: string) => void
  }) {
    this.#session = params.session
    this.#onEmpty = params.onEmpty
    this.#notices = params.notices
    this.#doubts = params.doubts
    this.#limitMs = params.limitMs
    this.#onNews = params.onNews
    this.#warn = params.warn
  }

  /** Whether earlier writes of the same run wait: it has to come after them. */
  holds(write: Write): boolean {
    return this.#runs.has(keyOf(write))
  }

  add(write: Write): Answer {
    const key = keyOf(write)
    const waiting = this.#runs.get(key) ?? []
    const known = waiting.find((other) => other.write === write)
    if (known) return { type: 'held', answer: known.answer.promise }
    const answer = Promise.withResolvers<Answer>()
    // Nobody has the answer of a write whose batch fails after it came here.
    answer.promise.catch(() => undefined)
    this.#runs.set(key, [...waiting, { write, since: performance.now(), answer }])
    if (this.#isClosed) this.#rejectAll()
    else this.#working ??= this.#work()
    return { type: 'held', answer: answer.promise }
  }

  open(): void {
    this.#isClosed = false
  }

  /** Rejects what waits. Idempotent. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#rejectAll()
    await this.#working
  }

  /** What comes while the connection is being closed is tried too. */
  async #work(): Promise<void> {
    do {
      await this.#drain()
      await this.#onEmpty().catch(() => undefined)
    } while (this.#runs.size > 0)
    this.#warned.clear()
    this.#working = null
  }

  async #drain(): Promise<void> {
    let pause = FIRST_PAUSE_MS
    while (this.#runs.size > 0) {
      let isAnyDone = false
      for (const key of [...this.#runs.keys()]) if (await this.#attempt(key)) isAnyDone = true
      pause = isAnyDone ? FIRST_PAUSE_MS : Math.min(pause * 2, LAST_PAUSE_MS)
      if (this.#runs.size > 0) await delay(pause)
    }
  }

  /** Whether the writes of the run have been answered. */
  async #attempt(key: string): Promise<boolean> {
    const waiting = this.#runs.get(key)
    if (!waiting) return false
    try {
      const session = await this.#session()
      const flush = await flushGenerically(
        session,
        waiting.map(({ write }) => write),
        {
          doubts: this.#doubts,
          skipLocked: true,
          notices: this.#notices,
        }
      )
      this.#answer(key, waiting, (index) => flush.answers[index])
      this.#onNews(flush.news)
      return true
    } catch (error) {
      if (isOwnFault(error)) {
        this.#forget(key, waiting)
        for (const { answer } of waiting) answer.reject(error)
        return true
      }
      if (!(error instanceof HeldElsewhereError)) this.#onError(error, { key, waiting })
      this.#giveUpCallers(key)
      return false
    }
  }

  #onError(error: unknown, { key, waiting }: { key: string; waiting: readonly Waiting[] }): void {
    const kind = errorClass(error)
    switch (kind) {
      case 'data':
        return this.#answer(key, waiting, () => ({ type: 'refused', error }))
      case 'lock':
        return
      case 'connection':
        this.#doubts.add(waiting.map(({ write }) => write))
        return this.#warnOnce(kind, error)
      case 'conflict':
      case 'other':
        return this.#warnOnce(kind, error)
    }
  }

  /** A write is tried four times a second: a kind of failure is told once, until nothing waits any more. */
  #warnOnce(kind: ErrorClass, error: unknown): void {
    if (this.#warned.has(kind)) return
    this.#warned.add(kind)
    const reason = error instanceof Error ? error.message : String(error)
    this.#warn(
      `What had to wait for rows that others held cannot be written, and is tried again: ${reason}`
    )
  }

  #answer(
    key: string,
    waiting: readonly Waiting[],
    answerOf: (index: number) => Answer | undefined
  ): void {
    const answers = waiting.map((_, index) => the(answerOf(index), 'the answer to a write'))
    this.#forget(key, waiting)
    for (const [index, answer] of answers.entries()) waiting[index]?.answer.resolve(answer)
  }

  /** What has come meanwhile goes on waiting. */
  #forget(key: string, waiting: readonly Waiting[]): void {
    const left = this.#runs.get(key)?.filter((one) => !waiting.includes(one)) ?? []
    if (left.length > 0) this.#runs.set(key, left)
    else this.#runs.delete(key)
  }

  #giveUpCallers(key: string): void {
    const now = performance.now()
    const isLate = ({ write, since }: Waiting) =>
      write.type !== 'turn' && now - since > this.#limitMs
    const late = this.#runs.get(key)?.filter(isLate) ?? []
    this.#forget(key, late)
    for (const { answer, since } of late) answer.reject(new E_STORE_BUSY([Math.round(now - since)]))
  }

  #rejectAll(): void {
    for (const waiting of this.#runs.values())
      for (const { answer } of waiting) answer.reject(new E_ENGINE_STOPPED())
    this.#runs.clear()
  }
}

import { setTimeout as delay } from 'node:timers/promises'
import type { Answer, Write } from '../../../core/change_set.ts'
import { the } from '../../../core/present.ts'
import type { Flush } from '../../../contracts/store.ts'
import { applySplitInTurn, type Attempt, mergedNews } from '../split.ts'
import type { Doubts } from './doubts.ts'
import { type ErrorClass, errorClass } from './error_class.ts'
import { type FusedFlush, flushFused } from './fused_flush.ts'
import { fusedPlan } from './fused_plan.ts'
import { flushGenerically } from './generic_flush.ts'
import type { HeldLane } from './held_lane.ts'
import { HeldElsewhereError } from './locked_rows.ts'
import type { Notices } from './notices.ts'
import type { PostgresSession } from './session.ts'

const MAX_CONFLICTS = 10
/** What is missing where it is. */
const ANSWER = 'the answer to a write'
const FIRST_PAUSE_MS = 20
const LAST_PAUSE_MS = 500

interface WriterParams {
  session: () => Promise<PostgresSession>
  lane: HeldLane
  notices: Notices
  doubts: Doubts
  /** How long a batch is sent again while the server is away, in ms. */
  limitMs: number
  /** False only where a run is known to be nobody's child. */
  mayHaveParent: (runId: string) => boolean
  /** False: every batch goes the way of those that touch tokens; for tests. */
  isFused: boolean
}

/**
 * The one writer of this process. What one statement can write is written by one; the rest in a short transaction. A
 * batch whose connection is lost is sent again on a new one, for as long as the limit allows; writes of which nobody
 * knows whether they were applied are looked for first.
 */
export class PostgresWriter {
  #params: WriterParams

  constructor(params: WriterParams) {
    this.#params = params
  }

  async flush(writes: readonly Write[]): Promise<Flush> {
    const { lane } = this.#params
    const free = writes.filter((write) => !lane.holds(write))
    if (free.length < writes.length) {
      const flush = await this.flush(free)
      const answered = flush.answers.values()
      const isFree = new Set(free)
      const answerOf = (write: Write) =>
        isFree.has(write) ? the(answered.next().value, ANSWER) : this.#wait(write)
      return { answers: writes.map(answerOf), news: flush.news }
    }
    try {
      return await this.#settle(writes)
    } catch (error) {
      // Some may have been applied before the others failed.
      this.#params.doubts.add(writes)
      throw error
    }
  }

  async #settle(writes: readonly Write[], options = { isFused: true }): Promise<Flush> {
    if (writes.length === 0) return NOTHING
    const whole = await this.#try(writes, options)
    if ('flush' in whole) return whole.flush
    return applySplitInTurn(writes, (some) => this.#try(some, options))
  }

  async #try(writes: readonly Write[], options: { isFused: boolean }): Promise<Attempt> {
    try {
      return { flush: await this.#persistently(writes, options) }
    } catch (error) {
      if (errorClass(error) === 'data') return { refused: error }
      throw error
    }
  }

  /** Tries until the batch is applied, refused for its data, or given up. */
  async #persistently(writes: readonly Write[], options: { isFused: boolean }): Promise<Flush> {
    const begin = performance.now()
    let conflicts = 0
    let pause = FIRST_PAUSE_MS
    for (;;) {
      try {
        return await this.#attempt(writes, options)
      } catch (error) {
        const kind = errorClass(error)
        if (kind === 'lock') return this.#writeAround(writes)
        if (!isRepeated(kind)) throw error
        if (performance.now() - begin > this.#params.limitMs || conflicts > MAX_CONFLICTS)
          throw error
        if (kind === 'conflict') {
          conflicts++
          continue
        }
        this.#params.doubts.add(writes)
        await delay(pause)
        pause = Math.min(pause * 2, LAST_PAUSE_MS)
      }
    }
  }

  async #attempt(writes: readonly Write[], options: { isFused: boolean }): Promise<Flush> {
    const { notices, doubts } = this.#params
    const session = await this.#params.session()
    const isFused = options.isFused && this.#params.isFused
    const isSure = !writes.some((write) => doubts.has(write))
    const plan = isFused && isSure ? fusedPlan(writes, this.#params) : null
    if (plan) {
      try {
        return await this.#complete(writes, await flushFused(session, { plan, writes, notices }))
      } catch (error) {
        // It may be the id of a child, of which only the short transaction can say that it is taken.
        if (errorClass(error) !== 'data') throw error
      }
    }
    return this.#fold(writes, { skipLocked: false })
  }

  async #fold(writes: readonly Write[], options: { skipLocked: boolean }): Promise<Flush> {
    const { notices, doubts } = this.#params
    const session = await this.#params.session()
    return flushGenerically(session, writes, { ...options, notices, doubts })
  }

  /** Folds what the one statement left undecided. */
  async #complete(writes: readonly Write[], { answers, news }: FusedFlush): Promise<Flush> {
    const left = writes.filter((_, index) => answers[index] === null)
    const rest = await this.#settle(left, { isFused: false })
    const added = rest.answers.values()
    return {
      answers: answers.map((answer) => answer ?? the(added.next().value, ANSWER)),
      news: mergedNews([news, rest.news]),
    }
  }

  /** Writes what is free, and leaves the rest to wait by itself. */
  async #writeAround(writes: readonly Write[]): Promise<Flush> {
    let held = new Set<Write>()
    for (;;) {
      const free = writes.filter((write) => !held.has(write))
      try {
        const { answers, news } =
          free.length === 0 ? NOTHING : await this.#fold(free, { skipLocked: true })
        const answered = answers.values()
        const answerOf = (write: Write): Answer =>
          held.has(write) ? this.#wait(write) : the(answered.next().value, ANSWER)
        return { answers: writes.map(answerOf), news }
      } catch (error) {
        const found = heldWrites(free, error)
        if (found.length === 0) throw error
        held = held.union(new Set(found))
      }
    }
  }

  #wait(write: Write): Answer {
    return this.#params.lane.add(write)
  }
}

const NOTHING: Flush = {
  answers: [],
  news: { due: new Set(), dueIn: null, inbox: new Set(), revoked: new Map(), ended: new Set() },
}

/** Writes that had to wait; where it was an insertion, nobody says which, and all of them are taken to. */
function heldWrites(writes: readonly Write[], error: unknown): readonly Write[] {
  if (error instanceof HeldElsewhereError) return error.writes
  if (errorClass(error) !== 'lock') return []
  const inserting = writes.filter(
    (write) => write.type === 'start' || (write.type === 'turn' && write.children.length > 0)
  )
  return inserting.length > 0 ? inserting : writes
}

function isRepeated(kind: ErrorClass): boolean {
  switch (kind) {
    case 'conflict':
    case 'connection':
      return true
    case 'data':
    case 'lock':
    case 'other':
      return false
  }
}

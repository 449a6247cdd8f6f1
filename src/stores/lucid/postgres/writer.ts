import { setTimeout as delay } from 'node:timers/promises'
import type { Write } from '../../../core/change_set.ts'
import type { Flush } from '../../../contracts/store.ts'
import { applySplitInTurn, type Attempt } from '../split.ts'
import type { PostgresConnection } from './connection.ts'
import { type ErrorClass, errorClass } from './error_class.ts'
import { flushGenerically } from './generic_flush.ts'
import type { Notices } from './notices.ts'

const MAX_CONFLICTS = 10
const FIRST_PAUSE_MS = 20
const LAST_PAUSE_MS = 500

/**
 * The one writer of this process. A batch whose connection is lost is sent again on a new one, for as long as the
 * limit allows; writes of which nobody knows whether they were applied are looked for first.
 */
export class PostgresWriter {
  #connection: PostgresConnection
  #notices: Notices
  #limitMs: number
  #doubtful = new WeakSet<Write>()

  constructor(params: { connection: PostgresConnection; notices: Notices; limitMs: number }) {
    this.#connection = params.connection
    this.#notices = params.notices
    this.#limitMs = params.limitMs
  }

  async flush(writes: readonly Write[]): Promise<Flush> {
    if (writes.length === 0) return NOTHING
    try {
      const whole = await this.#try(writes)
      if ('flush' in whole) return whole.flush
      return await applySplitInTurn(writes, (some) => this.#try(some))
    } catch (error) {
      // Some may have been applied before the others failed.
      for (const write of writes) this.#doubtful.add(write)
      throw error
    }
  }

  async #try(writes: readonly Write[]): Promise<Attempt> {
    try {
      return { flush: await this.#persistently(writes) }
    } catch (error) {
      if (errorClass(error) === 'data') return { refused: error }
      throw error
    }
  }

  /** Tries until the batch is applied, refused for its data, or given up. */
  async #persistently(writes: readonly Write[]): Promise<Flush> {
    const begin = performance.now()
    let conflicts = 0
    let pause = FIRST_PAUSE_MS
    for (;;) {
      try {
        return await this.#attempt(writes)
      } catch (error) {
        const kind = errorClass(error)
        const isOver = performance.now() - begin > this.#limitMs
        if (!isRepeated(kind) || isOver || ++conflicts > MAX_CONFLICTS) throw error
        if (kind === 'conflict') continue
        for (const write of writes) this.#doubtful.add(write)
        await delay(pause)
        pause = Math.min(pause * 2, LAST_PAUSE_MS)
      }
    }
  }

  async #attempt(writes: readonly Write[]): Promise<Flush> {
    const session = await this.#connection.session()
    return flushGenerically(session, writes, {
      isDoubtful: (write) => this.#doubtful.has(write),
      skipLocked: false,
      notices: this.#notices,
    })
  }
}

const NOTHING: Flush = {
  answers: [],
  news: { due: new Set(), dueIn: null, inbox: new Set(), ended: new Set() },
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

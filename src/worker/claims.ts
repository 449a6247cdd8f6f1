import { setImmediate } from 'node:timers'
import type { Store } from '../contracts/store.ts'
import type { FlushNews } from '../core/change_set.ts'
import { ordinaryKey, suspectKey } from '../core/name.ts'
import { Loop } from './loop.ts'
import type { RunPool } from './pool.ts'
import type { WorkerSession } from './session.ts'

interface ClaimsParams {
  store: Store
  session: WorkerSession
  pool: RunPool
  /** Claim keys of the workflows that this process knows. */
  keys: () => readonly string[]
  pollMs: number
  /** The longest pause between two looks. */
  idlePollMs: number
  retryMs: number
  onError: (error: unknown) => void
}

const MAX_CLAIM = 100

/** Takes due runs for as long as there are free slots: many at once, but those that were lost before one at a time. */
export class Claims {
  #params: ClaimsParams
  #loop: Loop
  #hasBacklog = true
  /** Whether the last look at suspects found one: there may be more. */
  #hasSuspects = false
  #suspectsSoughtAt = -Infinity
  #pauseMs: number
  #startedAt = Infinity

  constructor(params: ClaimsParams) {
    this.#params = params
    this.#pauseMs = params.pollMs
    const { retryMs, onError } = params
    this.#loop = new Loop({ pass: () => this.#claim(), retryMs, onError })
  }

  /** Whether runs may be due that wait for a slot of this process. */
  get hasBacklog(): boolean {
    return this.#hasBacklog
  }

  /** No claim is under way. */
  get isAtRest(): boolean {
    return this.#loop.isAtRest
  }

  start(): void {
    this.#startedAt = performance.now()
    this.#loop.start()
  }

  stop(): Promise<void> {
    return this.#loop.stop()
  }

  trigger(): void {
    this.#loop.trigger()
  }

  /** Slots become free in groups, with the flush that ends their runs: one claim fills them all. */
  slotFreed(): void {
    if (this.#hasBacklog || this.#hasSuspects) setImmediate(() => this.trigger())
  }

  runsRecovered(): void {
    this.#suspectsSoughtAt = -Infinity
    this.trigger()
  }

  runsDue({ due, dueIn }: FlushNews): void {
    const keys = this.#params.keys()
    if ([...due].some((key) => keys.includes(ordinaryKey(key)))) this.trigger()
    if (dueIn !== null) this.#loop.within(dueIn)
  }

  /** One pass; in how many ms to look again. */
  async #claim(): Promise<number> {
    const { store, session, pool, pollMs, idlePollMs } = this.#params
    const claimKeys = this.#params.keys()
    if (claimKeys.length === 0 || !session.isHeld) return pollMs
    if (pool.free === 0) {
      if (this.#hasBacklog) return idlePollMs
      const dueIn = await store.nextDueIn(claimKeys)
      this.#hasBacklog = dueIn === 0
      return this.#hasBacklog ? idlePollMs : Math.min(dueIn ?? Infinity, idlePollMs)
    }
    const kept = this.#hasBacklog && this.#isTimeForSuspects ? 1 : 0
    const limit = Math.min(pool.free - kept, MAX_CLAIM)
    const rows = limit > 0 ? await store.claim({ owner: session.owner, claimKeys, limit }) : []
    // As many as it has slots may be all there are: what is started here is leased at once only where nothing waits.
    this.#hasBacklog = rows.length === limit && (await this.#isAnyDue())
    if (rows.length > 0) await pool.execute(rows)
    const found = rows.length + (this.#isTimeForSuspects ? await this.#takeSuspect() : 0)
    if (this.#hasBacklog) return pool.free > 0 ? 0 : idlePollMs
    const dueIn = await store.nextDueIn(claimKeys)
    this.#pauseMs = found > 0 ? pollMs : Math.min(this.#pauseMs * 2, idlePollMs)
    return Math.min(Math.max(dueIn ?? Infinity, 1), this.#pauseMs)
  }

  async #isAnyDue(): Promise<boolean> {
    return (await this.#params.store.nextDueIn(this.#params.keys())) === 0
  }

  /**
   * A run that was lost before is executed with no other such run beside it: if it is what kills its workers, nobody
   * else is counted for it again and again.
   */
  async #takeSuspect(): Promise<number> {
    const { store, session, pool, keys } = this.#params
    const claimKeys = keys().map(suspectKey)
    const rows = await store.claim({ owner: session.owner, claimKeys, limit: 1 })
    this.#hasSuspects = rows.length > 0
    this.#suspectsSoughtAt = performance.now()
    if (rows.length > 0) await pool.execute(rows)
    return rows.length
  }

  /**
   * They are rare: one look in a while finds the first, and each that has gone makes room for the next. While others
   * wait for slots, a suspect gets one now and then, and not at once when the worker starts: one that kills every
   * process would else keep them waiting for ever.
   */
  get #isTimeForSuspects(): boolean {
    const { pool, pollMs } = this.#params
    if (pool.hasSuspect || pool.free === 0) return false
    const sought = this.#suspectsSoughtAt
    if (this.#hasBacklog) return performance.now() - Math.max(sought, this.#startedAt) >= pollMs
    return this.#hasSuspects || performance.now() - sought >= pollMs
  }
}

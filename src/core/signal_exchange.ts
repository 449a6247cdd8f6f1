import type { SignalSend } from './change_set.ts'
import type { SignalEntry, Wait } from './history.ts'
import type { KeptSignal, LockedState, OfRun, Waiter } from './plan.ts'

/** What the exchange asks of the batch it belongs to. */
export interface Receivers {
  /** Whether the run exists and has not ended. */
  isLive(runId: string): boolean
  /** Puts the signal into the run's inbox, which numbers it. */
  deliver(runId: string, entry: Omit<SignalEntry, 'no'>): void
}

/** What the exchange comes to; see `Plan`. */
export interface SignalPlan {
  waits: OfRun<Wait>[]
  served: Waiter[]
  closed: Waiter[]
  kept: KeptSignal[]
  used: { id: string; token: string }[]
}

/**
 * The open waits of a batch, and the signals that meet them. A signal goes to the wait that was registered
 * first and has none yet, across runs; without one it is kept, and the next wait for its token gets it.
 */
export class SignalExchange {
  #waits = new Map<string, OfRun<Wait>>()
  #byToken = new Map<string, Set<string>>()
  #served = new Map<string, Waiter>()
  #closed = new Map<string, Waiter>()
  #kept: KeptSignal[] = []
  #used = new Map<string, { id: string; token: string }>()
  #sent = new Set<string>()

  constructor(
    private locked: LockedState,
    private receivers: Receivers
  ) {}

  open(wait: OfRun<Wait>) {
    const key = waitKey(wait)
    this.#closed.delete(key)
    this.#served.delete(key)
    this.#waits.set(key, wait)
    if (wait.token === null) return
    const sameToken = this.#byToken.get(wait.token)
    if (sameToken) sameToken.add(key)
    else this.#byToken.set(wait.token, new Set([key]))
    const signal = this.#takeKept(wait.token)
    if (signal) this.#give(wait, signal)
  }

  close(waiter: Waiter) {
    const key = waitKey(waiter)
    this.#waits.delete(key)
    this.#served.delete(key)
    this.#closed.set(key, { runId: waiter.runId, seq: waiter.seq })
  }

  /** Whether the signal has found somebody who waits for it, now or when it was sent before. */
  send({ id, token, payload }: SignalSend): boolean {
    const key = signalKey({ id, token })
    if (this.#sent.has(key) || this.locked.hasSignal(id, token)) return !this.#isKept(id, token)
    this.#sent.add(key)
    const waiter = this.#nextWaiter(token)
    const signal = { id, token, payload, receivedAt: this.locked.now }
    if (waiter) this.#give(waiter, signal)
    else this.#kept.push(signal)
    return waiter !== undefined
  }

  /**
   * Gives a signal that its receiver has not used to the next who waits. If it is kept, it becomes one millisecond
   * older: what was kept in the millisecond it came in, came after it.
   */
  giveBack({ signalId: id, token, payload, receivedAt }: Omit<SignalEntry, 'kind' | 'no' | 'seq'>) {
    const waiter = this.#nextWaiter(token)
    if (waiter) this.#give(waiter, { id, token, payload, receivedAt })
    else this.#kept.push({ id, token, payload, receivedAt: receivedAt - 1 })
  }

  plan(): SignalPlan {
    return {
      waits: [...this.#waits.values()],
      served: [...this.#served.values()],
      closed: [...this.#closed.values()],
      kept: this.#kept,
      used: [...this.#used.values()],
    }
  }

  #takeKept(token: string): KeptSignal | undefined {
    const stored = this.#storedKept(token)[0]
    const index = oldest(this.#kept, token)
    const fresh = this.#kept[index]
    if (fresh && (!stored || fresh.receivedAt < stored.receivedAt)) {
      this.#kept.splice(index, 1)
      return fresh
    }
    if (stored) this.#used.set(signalKey(stored), { id: stored.id, token })
    return stored
  }

  #storedKept(token: string): KeptSignal[] {
    return this.locked.keptSignals(token).filter((signal) => !this.#used.has(signalKey(signal)))
  }

  #isKept(id: string, token: string): boolean {
    const isSame = (signal: KeptSignal) => signal.id === id && signal.token === token
    return this.#kept.some(isSame) || this.#storedKept(token).some(isSame)
  }

  #nextWaiter(token: string): Waiter | undefined {
    const stored = this.locked.waiters(token).find((waiter) => {
      const key = waitKey(waiter)
      return this.#waits.has(key) ? this.#isWaiting(key, token) : this.#isFree(waiter)
    })
    if (stored) return stored
    for (const key of this.#byToken.get(token) ?? [])
      if (this.#isWaiting(key, token)) return this.#waits.get(key)
    return undefined
  }

  #isWaiting(key: string, token: string): boolean {
    const wait = this.#waits.get(key)
    return wait !== undefined && wait.token === token && this.#isFree(wait)
  }

  #isFree(waiter: Waiter): boolean {
    const key = waitKey(waiter)
    if (this.#served.has(key) || this.#closed.has(key)) return false
    return this.receivers.isLive(waiter.runId)
  }

  #give({ runId, seq }: Waiter, { id, token, payload, receivedAt }: KeptSignal) {
    this.#served.set(waitKey({ runId, seq }), { runId, seq })
    const entry = { kind: 'signal' as const, seq, signalId: id, token, payload, receivedAt }
    this.receivers.deliver(runId, entry)
  }
}

/** Index of the oldest signal of the token; -1 = none. */
function oldest(kept: readonly KeptSignal[], token: string): number {
  let found = -1
  kept.forEach((signal, index) => {
    if (signal.token !== token) return
    if (found === -1 || signal.receivedAt < (kept[found]?.receivedAt ?? 0)) found = index
  })
  return found
}

function waitKey({ runId, seq }: Waiter): string {
  return `${runId} ${seq}`
}

function signalKey({ id, token }: { id: string; token: string }): string {
  return `${token} ${id}`
}

import { type DispatchKey, isInFlight } from '../../core/dispatch.ts'
import type { Wait } from '../../core/history.ts'
import type { OfRun, Waiter } from '../../core/plan.ts'

type StoredWait = OfRun<Wait> & { served: boolean }

/** Open operations by run and position, and who waits for which signal. */
export class WaitTable {
  #waits = new Map<string, Map<number, StoredWait>>()
  #byToken = new Map<string, Map<string, StoredWait>>()

  put(wait: OfRun<Wait>) {
    const { runId, seq, token } = wait
    const waits = this.#waits.get(runId) ?? new Map<number, StoredWait>()
    this.#waits.set(runId, waits)
    const before = waits.get(seq)
    if (before && before.token !== token) this.#unlist(before)
    const stored = { ...wait, served: false }
    waits.set(seq, stored)
    if (token === null) return
    const waiters = this.#byToken.get(token) ?? new Map<string, StoredWait>()
    this.#byToken.set(token, waiters.set(keyOf(wait), stored))
  }

  serve({ runId, seq }: Waiter) {
    const wait = this.#waits.get(runId)?.get(seq)
    if (wait) wait.served = true
  }

  /** False when nothing waits for the attempt. */
  heartbeat({ runId, seq, generation, attempt }: DispatchKey, now: number): boolean {
    const wait = this.#waits.get(runId)?.get(seq)
    const dispatch = wait?.dispatch
    if (!dispatch || dispatch.generation !== generation || dispatch.attempt !== attempt)
      return false
    if (!isInFlight(wait)) return false
    if (dispatch.silenceMs !== null) wait.dueAt = now + dispatch.silenceMs
    return true
  }

  close({ runId, seq }: Waiter) {
    const waits = this.#waits.get(runId)
    const wait = waits?.get(seq)
    if (!waits || !wait) return
    this.#unlist(wait)
    waits.delete(seq)
    if (waits.size === 0) this.#waits.delete(runId)
  }

  clear(runId: string) {
    for (const wait of this.#waits.get(runId)?.values() ?? []) this.#unlist(wait)
    this.#waits.delete(runId)
  }

  /** In order of position. */
  of(runId: string): Wait[] {
    return [...(this.#waits.get(runId)?.values() ?? [])]
      .map(({ runId: _, served, ...wait }) => wait)
      .sort((a, b) => a.seq - b.seq)
  }

  /** Open waits for the token that have not been given a signal, in order of registration. */
  waiters(token: string): Waiter[] {
    return [...(this.#byToken.get(token)?.values() ?? [])]
      .filter(({ served }) => !served)
      .map(({ runId, seq }) => ({ runId, seq }))
  }

  isServed({ runId, seq }: Waiter): boolean {
    return this.#waits.get(runId)?.get(seq)?.served ?? false
  }

  #unlist(wait: StoredWait) {
    if (wait.token === null) return
    const waiters = this.#byToken.get(wait.token)
    waiters?.delete(keyOf(wait))
    if (waiters?.size === 0) this.#byToken.delete(wait.token)
  }
}

function keyOf({ runId, seq }: Waiter): string {
  return `${runId} ${seq}`
}

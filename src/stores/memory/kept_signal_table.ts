import type { KeptSignal } from '../../core/plan.ts'

/** Signals that nobody waited for, by token: oldest first, then in order of arrival. */
export class KeptSignalTable {
  #kept = new Map<string, KeptSignal[]>()

  add(signal: KeptSignal) {
    const kept = this.#kept.get(signal.token)
    if (!kept) this.#kept.set(signal.token, [{ ...signal }])
    else kept.splice(kept.findLastIndex(isNotNewer(signal)) + 1, 0, { ...signal })
  }

  remove({ id, token }: { id: string; token: string }) {
    const left = this.of(token).filter((signal) => signal.id !== id)
    if (left.length > 0) this.#kept.set(token, left)
    else this.#kept.delete(token)
  }

  of(token: string): KeptSignal[] {
    return (this.#kept.get(token) ?? []).map((signal) => ({ ...signal }))
  }

  has(id: string, token: string): boolean {
    return this.#kept.get(token)?.some((signal) => signal.id === id) ?? false
  }
}

function isNotNewer({ receivedAt }: KeptSignal) {
  return (other: KeptSignal) => other.receivedAt <= receivedAt
}

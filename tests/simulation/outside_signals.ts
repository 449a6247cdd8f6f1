import { encode } from '../../src/core/payload.ts'
import type { MemoryStore } from '../../src/stores/memory/memory_store.ts'

/** Signals that come from no run. */
export class OutsideSignals {
  /** Ids of all signals sent; those that runs send are added by whoever sees them. */
  readonly sent = new Set<string>()
  #store: MemoryStore
  #left: string[]
  #count = 0

  /** `tokens`: what is still to be sent, in this order. */
  constructor(store: MemoryStore, tokens: readonly string[]) {
    this.#store = store
    this.#left = [...tokens]
  }

  get areLeft(): boolean {
    return this.#left.length > 0
  }

  sendNext(): void {
    const token = this.#left.shift()
    if (token !== undefined) this.send(token)
  }

  send(token: string): void {
    const id = `outside-${this.#count++}`
    this.sent.add(id)
    const signal = { id, token, payload: encode(id) }
    void this.#store.commit([{ type: 'signal', signal }])
  }
}

import type { Write } from '../../../core/change_set.ts'

/** Writes that may have been applied, and whose answer nobody has heard: their batch failed, or its connection was lost. */
export class Doubts {
  #writes = new WeakSet<Write>()
  #unheard = new WeakMap<Write, unknown>()

  add(writes: readonly Write[]): void {
    for (const write of writes) this.#writes.add(write)
  }

  /** Their commit was sent in a transaction, and the connection lost with this error before its answer. */
  addUnheard(writes: readonly Write[], error: unknown): void {
    this.add(writes)
    for (const write of writes) this.#unheard.set(write, error)
  }

  has(write: Write): boolean {
    return this.#writes.has(write)
  }

  /** The error of the connection; undefined: no commit of the write was sent, or each was answered. */
  causeOf(write: Write): unknown {
    return this.#unheard.get(write)
  }
}

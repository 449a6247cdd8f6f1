/** A run and the instant it is due at. */
export interface DueEntry {
  runId: string
  dueAt: number
  /** Order of arrival, for runs that are due at one instant. */
  order: number
}

const COMPACT_ABOVE = 64

/**
 * Runs in order of their due time. Setting and removing cost the logarithm of their number: a replaced entry
 * stays in the heap until it comes up or the heap is compacted.
 */
export class DueQueue {
  #heap: DueEntry[] = []
  #live = new Map<string, DueEntry>()
  #arrivals = 0

  set(runId: string, dueAt: number) {
    if (this.#live.get(runId)?.dueAt === dueAt) return
    this.restore({ runId, dueAt, order: this.#arrivals++ })
  }

  delete(runId: string) {
    this.#live.delete(runId)
  }

  /** The run that is due first. */
  peek(): DueEntry | undefined {
    for (;;) {
      const first = this.#heap[0]
      if (first === undefined || this.#live.get(first.runId) === first) return first
      this.#removeFirst()
    }
  }

  /** Takes out the run that is due first, if that is at `now` or before. */
  takeDue(now: number): DueEntry | undefined {
    const first = this.peek()
    if (first === undefined || first.dueAt > now) return undefined
    this.#removeFirst()
    this.#live.delete(first.runId)
    return first
  }

  /** Puts an entry in at the place its due time and arrival give it. */
  restore(entry: DueEntry) {
    this.#live.set(entry.runId, entry)
    if (this.#heap.length > 2 * this.#live.size + COMPACT_ABOVE) this.#compact()
    else this.#rise(this.#heap.push(entry) - 1)
  }

  #compact() {
    this.#heap = [...this.#live.values()].sort(byDue)
  }

  #removeFirst() {
    const last = this.#heap.pop()
    if (last === undefined || this.#heap.length === 0) return
    this.#heap[0] = last
    this.#sink()
  }

  #rise(from: number) {
    for (let index = from; index > 0;) {
      const parent = (index - 1) >> 1
      if (!this.#isBefore(index, parent)) return
      this.#swap(index, parent)
      index = parent
    }
  }

  #sink() {
    for (let index = 0; ;) {
      let first = index
      for (const child of [2 * index + 1, 2 * index + 2])
        if (child < this.#heap.length && this.#isBefore(child, first)) first = child
      if (first === index) return
      this.#swap(index, first)
      index = first
    }
  }

  #isBefore(left: number, right: number): boolean {
    const [a, b] = [this.#heap[left], this.#heap[right]]
    return a !== undefined && b !== undefined && byDue(a, b) < 0
  }

  #swap(left: number, right: number) {
    const [a, b] = [this.#heap[left], this.#heap[right]]
    if (a === undefined || b === undefined) return
    this.#heap[left] = b
    this.#heap[right] = a
  }
}

export function byDue(a: DueEntry, b: DueEntry): number {
  return a.dueAt - b.dueAt || a.order - b.order
}

import type { InboxEntry } from '../../core/history.ts'
import type { OfRun } from '../../core/plan.ts'

/** Entries that no turn has taken, by run in order of number. */
export class InboxTable {
  #entries = new Map<string, InboxEntry[]>()
  #signals = new Set<string>()

  add({ runId, ...entry }: OfRun<InboxEntry>) {
    const entries = this.#entries.get(runId)
    if (entries) entries.push(entry)
    else this.#entries.set(runId, [entry])
    if (entry.kind === 'signal') this.#signals.add(keyOf(entry.signalId, entry.token))
  }

  remove(runId: string, isGone: (entry: InboxEntry) => boolean) {
    const entries = this.#entries.get(runId)
    if (!entries) return
    const left: InboxEntry[] = []
    for (const entry of entries) {
      if (!isGone(entry)) left.push(entry)
      else if (entry.kind === 'signal') this.#signals.delete(keyOf(entry.signalId, entry.token))
    }
    if (left.length > 0) this.#entries.set(runId, left)
    else this.#entries.delete(runId)
  }

  /** In order of number, from the one that follows `after`. */
  above(runId: string, after: number): InboxEntry[] {
    const entries = this.#entries.get(runId) ?? []
    return entries.filter(({ no }) => no > after).map((entry) => ({ ...entry }))
  }

  hasSignal(id: string, token: string): boolean {
    return this.#signals.has(keyOf(id, token))
  }
}

function keyOf(id: string, token: string): string {
  return `${token} ${id}`
}

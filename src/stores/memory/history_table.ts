import type { HistoryRecord } from '../../core/history.ts'
import type { OfRun } from '../../core/plan.ts'

/** Recorded operations by run, generation and position. */
export class HistoryTable {
  #records = new Map<string, Map<string, HistoryRecord>>()

  /** Runs whose position is taken, by a stored record or by another of these. */
  colliding(records: readonly OfRun<HistoryRecord>[]): Map<string, Error> {
    const found = new Map<string, Error>()
    const seen = new Set<string>()
    for (const record of records) {
      const key = `${record.runId} ${keyOf(record)}`
      if (seen.has(key) || this.#records.get(record.runId)?.has(keyOf(record)))
        found.set(
          record.runId,
          new Error(
            `The history of "${record.runId}" has a record at position ${record.seq} already`
          )
        )
      seen.add(key)
    }
    return found
  }

  add({ runId, ...record }: OfRun<HistoryRecord>) {
    const records = this.#records.get(runId)
    if (records) records.set(keyOf(record), record)
    else this.#records.set(runId, new Map([[keyOf(record), record]]))
  }

  /** Moves live records to a generation above all others of the run; a handoff is renamed as retried. */
  retire(runId: string, seqs: readonly number[]) {
    const records = this.#records.get(runId)
    if (!records) return
    const generation = 1 + Math.max(...[...records.values()].map((record) => record.generation))
    for (const record of this.live(runId)) {
      if (!seqs.includes(record.seq)) continue
      records.delete(keyOf(record))
      const name =
        record.kind === 'handoff'
          ? record.name.replace('onError:', 'onError:retried:')
          : record.name
      const retired = { ...record, name, generation }
      records.set(keyOf(retired), retired)
    }
  }

  /** Every generation, in order of generation and position. */
  all(runId: string): HistoryRecord[] {
    return [...(this.#records.get(runId)?.values() ?? [])]
      .map((record) => ({ ...record }))
      .sort((a, b) => a.generation - b.generation || a.seq - b.seq)
  }

  live(runId: string): HistoryRecord[] {
    return this.all(runId).filter(({ generation }) => generation === 0)
  }
}

function keyOf({ generation, seq }: HistoryRecord): string {
  return `${generation} ${seq}`
}

import type { TurnRunner } from '../engine/turn_runner.ts'

/**
 * Suspended runs kept in memory, so that waking them replays nothing. Bounded by number and by bytes of history;
 * the one that was used longest ago goes first, which is always safe.
 */
export class Residents {
  #runs = new Map<string, TurnRunner>()
  #bytes = 0
  #limits: { runs: number; bytes: number }

  constructor(limits: { runs: number; bytes: number }) {
    this.#limits = limits
  }

  keep(runner: TurnRunner): void {
    this.#runs.set(runner.row.id, runner)
    this.#bytes += sizeOf(runner)
    for (const id of this.#runs.keys()) {
      if (this.#runs.size <= this.#limits.runs && this.#bytes <= this.#limits.bytes) break
      this.take(id)?.discard(new Error('The run is no longer kept in memory'))
    }
  }

  take(runId: string): TurnRunner | undefined {
    const runner = this.#runs.get(runId)
    if (!runner) return undefined
    this.#runs.delete(runId)
    this.#bytes -= sizeOf(runner)
    return runner
  }

  clear(reason: Error): void {
    for (const id of [...this.#runs.keys()]) this.take(id)?.discard(reason)
  }
}

/** Text of the recorded payloads, of which replay keeps the values as well. */
function sizeOf(runner: TurnRunner): number {
  return 2 * runner.historyCharacters
}

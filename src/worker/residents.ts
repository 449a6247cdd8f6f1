import { leaseLost, turnOver } from '../engine/abort_reasons.ts'
import type { Resident } from '../engine/execution.ts'
import type { AbortError } from '../errors.ts'

/**
 * Suspended runs kept in memory, so that waking them replays nothing. Bounded by number and by bytes of history;
 * the one that was kept longest ago goes first, which is always safe.
 */
export class Residents {
  #runs = new Map<string, Resident>()
  #bytes = 0
  #limits: { runs: number; bytes: number }

  constructor(limits: { runs: number; bytes: number }) {
    this.#limits = limits
  }

  /**
   * A run may have been claimed again before this process has heard of its suspension, and have been suspended under
   * that lease too: the later one is kept.
   */
  keep(resident: Resident): void {
    const { id, token } = resident.row
    const other = this.take(id)
    if (other && other.row.token > token) {
      resident.discard(leaseLost())
      return this.keep(other)
    }
    other?.discard(leaseLost())
    this.#runs.set(id, resident)
    this.#bytes += sizeOf(resident)
    for (const oldest of this.#runs.keys()) {
      if (this.#runs.size <= this.#limits.runs && this.#bytes <= this.#limits.bytes) break
      this.take(oldest)?.discard(turnOver('The run is no longer kept in memory'))
    }
  }

  get(runId: string): Resident | undefined {
    return this.#runs.get(runId)
  }

  take(runId: string): Resident | undefined {
    const resident = this.#runs.get(runId)
    if (!resident) return undefined
    this.#runs.delete(runId)
    this.#bytes -= sizeOf(resident)
    return resident
  }

  clear(reason: AbortError): void {
    for (const id of [...this.#runs.keys()]) this.take(id)?.discard(reason)
  }
}

/** Text of the recorded payloads, of which replay keeps the values as well. */
function sizeOf({ historyCharacters }: Resident): number {
  return 2 * historyCharacters
}

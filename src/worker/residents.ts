import { leaseLost, turnOver } from '../engine/abort_reasons.ts'
import type { AbortError } from '../errors.ts'

/** What is known here of a suspended run that is kept in memory. */
interface Kept {
  readonly row: { readonly id: string; readonly token: number }
  /** Characters of recorded payloads that it keeps. */
  readonly historyCharacters: number
  discard(reason: AbortError): void
}

/**
 * Suspended runs kept in memory, so that waking them replays nothing. Bounded by number and by bytes of history;
 * the one that was kept longest ago goes first, which is always safe.
 */
export class Residents<Runner extends Kept> {
  #runs = new Map<string, Runner>()
  #bytes = 0
  #limits: { runs: number; bytes: number }

  constructor(limits: { runs: number; bytes: number }) {
    this.#limits = limits
  }

  /**
   * A run may have been claimed again before this process has heard of its suspension, and have been suspended under
   * that lease too: the later one is kept.
   */
  keep(runner: Runner): void {
    const { id, token } = runner.row
    const other = this.take(id)
    if (other && other.row.token > token) {
      runner.discard(leaseLost())
      return this.keep(other)
    }
    other?.discard(leaseLost())
    this.#runs.set(id, runner)
    this.#bytes += sizeOf(runner)
    for (const oldest of this.#runs.keys()) {
      if (this.#runs.size <= this.#limits.runs && this.#bytes <= this.#limits.bytes) break
      this.take(oldest)?.discard(turnOver('The run is no longer kept in memory'))
    }
  }

  take(runId: string): Runner | undefined {
    const runner = this.#runs.get(runId)
    if (!runner) return undefined
    this.#runs.delete(runId)
    this.#bytes -= sizeOf(runner)
    return runner
  }

  clear(reason: AbortError): void {
    for (const id of [...this.#runs.keys()]) this.take(id)?.discard(reason)
  }
}

/** Text of the recorded payloads, of which replay keeps the values as well. */
function sizeOf({ historyCharacters }: Kept): number {
  return 2 * historyCharacters
}

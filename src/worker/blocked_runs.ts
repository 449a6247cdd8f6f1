import { errorLine } from '../core/error_line.ts'
import type { SerializedError } from '../core/serialized_error.ts'

const MOST = 1_000

/** What blocks which runs, as far as is known: a blocked run is tried again and again, and is no news each time. */
export class BlockedRuns {
  #known = new Map<string, string>()

  /** Whether the run was not known to be blocked, or is blocked by something else, or elsewhere in its body, than before. */
  note(runId: string, error: SerializedError): boolean {
    const why = reasonOf(error)
    if (this.#known.get(runId) === why) return false
    if (this.#known.size >= MOST) this.#known.clear()
    this.#known.set(runId, why)
    return true
  }

  over(runId: string): void {
    this.#known.delete(runId)
  }
}

/** Of what does not fit the history, kind and position: what the code asks for there may be another thing each time. */
function reasonOf(error: SerializedError): string {
  const { code, details } = error
  if (code !== 'non_determinism') return errorLine(error)
  const seq: unknown = Reflect.get(Object(details), 'seq')
  return `${code} ${String(seq)}`
}

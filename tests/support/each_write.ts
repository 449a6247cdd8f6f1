/** A claim may take what has become due since it was looked for: no process can be killed before that write. */
const MISSES = 20

/** A process that is to be killed at one of its writes. */
export interface KillAttempt {
  /** From 1. */
  write: number
  /** Unlike that of any other attempt. */
  id: string
}

/**
 * Kills one process after the other at writes 1, 2, ... until one comes to its end with fewer. Resolves to their number.
 *
 * @param attempt resolves to how many writes the process made; null: it was killed
 */
export async function eachWrite(
  attempt: (attempt: KillAttempt) => Promise<number | null>
): Promise<number> {
  let misses = 0
  for (let write = 1; misses < MISSES;) {
    const made = await attempt({ write, id: `${write}.${misses}` })
    if (made !== null && made < write) return write - 1
    if (made === null) {
      misses = 0
      write++
    } else misses++
  }
  throw new Error(`${MISSES} processes in a row began a write without being seen to`)
}

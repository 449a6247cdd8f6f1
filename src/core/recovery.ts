import { isSuspectKey } from './name.ts'
import type { RunRow } from './run.ts'

/**
 * The number of the counted claim, the next one included, from which on a lost run is a suspect. A kill counts for
 * every run of a process: only the second one says anything about a single run.
 *
 * @param cap `maxRecoveryAttempts`; null = unlimited
 */
export function suspectFrom(cap: number | null): number {
  return Math.min(2, cap ?? Infinity)
}

/**
 * Whether this claim is the one beyond the cap, with which the run ends `dead`. A wake is not a recovery, however often
 * the run was recovered before: what was lost beyond a cap comes under the key of a suspect.
 */
export function isBeyondCap(row: RunRow, cap: number | null): boolean {
  return cap !== null && row.recoveryAttempts > cap && isSuspectKey(row.claimKey)
}

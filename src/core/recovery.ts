import { isSuspectKey } from './name.ts'
import type { RunRow } from './run.ts'

/**
 * From which counted pickup on, the coming one included, a lost run is a suspect. A kill counts every run of a process:
 * only the second one says anything about a single run.
 *
 * @param cap `maxRecoveryAttempts`; null = unlimited
 */
export function suspectFrom(cap: number | null): number {
  return Math.min(2, cap ?? Infinity)
}

/**
 * Whether this pickup is the one beyond the cap, with which the run ends `dead`. A wake is no recovery, however often
 * the run was recovered before: what was lost beyond a cap comes under the key of a suspect.
 */
export function isBeyondCap(row: RunRow, cap: number | null): boolean {
  return cap !== null && row.recoveryAttempts > cap && isSuspectKey(row.claimKey)
}

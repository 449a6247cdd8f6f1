import type { LeaseStore } from '../contracts/store.ts'

/** What recurring upkeep looks like. */
export interface MaintenanceTask {
  name: string
  intervalMs: number
  /** One pass. */
  runOnce(): Promise<void>
}

/**
 * Makes the runs of processes whose lease has expired due. Only a worker whose own connection has been healthy for a
 * whole lease does: after an outage of the database every lease is old, and nobody has crashed.
 */
export function recovery(params: {
  store: LeaseStore
  leaseMs: number
  healthyMs: () => number
  suspectFrom: number
  onRecovered: (found: { workers: number; runs: number }) => void
}): MaintenanceTask {
  const { store, leaseMs, healthyMs, suspectFrom, onRecovered } = params
  return {
    name: 'recovery',
    intervalMs: Math.max(100, Math.floor(leaseMs / 6)),
    async runOnce() {
      if (healthyMs() < leaseMs) return
      const found = await store.recoverExpired({ suspectFrom })
      if (found.workers > 0) onRecovered(found)
    },
  }
}

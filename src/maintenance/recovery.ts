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
  /** One pass. */
  recover: () => Promise<{ workers: number; runs: number }>
  leaseMs: number
  healthyMs: () => number
  onRecovered: (found: { workers: number; runs: number }) => void
}): MaintenanceTask {
  const { recover, leaseMs, healthyMs, onRecovered } = params
  return {
    name: 'recovery',
    intervalMs: Math.max(100, Math.floor(leaseMs / 6)),
    async runOnce() {
      if (healthyMs() < leaseMs) return
      const found = await recover()
      if (found.workers > 0 || found.runs > 0) onRecovered(found)
    },
  }
}

import type { MaintenanceTask } from './recovery.ts'

const BATCH = 100

/** Cancels runs whose execution time is over, whether a worker knows their workflow or not. */
export function timeouts(params: {
  findOverdue: (limit: number) => Promise<readonly string[]>
  cancel: (runId: string) => Promise<unknown>
  intervalMs: number
}): MaintenanceTask {
  const { findOverdue, cancel, intervalMs } = params
  return {
    name: 'timeouts',
    intervalMs,
    async runOnce() {
      for (;;) {
        const overdue = await findOverdue(BATCH)
        await Promise.all(overdue.map((runId) => cancel(runId)))
        if (overdue.length < BATCH) return
      }
    },
  }
}

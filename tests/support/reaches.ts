import type { RunStatus } from '../../src/core/run.ts'
import { until } from './until.ts'

interface Runs {
  getRun(runId: string): Promise<{ status: RunStatus } | null>
}

/** Resolves once a run has this status. */
export function reaches(runs: Runs, runId: string, status: RunStatus): Promise<void> {
  return until(async () => {
    const run = await runs.getRun(runId)
    return run?.status === status
  })
}

import type { RunStatus } from '../../src/core/run.ts'
import type { WorkflowEngine } from '../../src/engine/engine.ts'

/** What became of a run so far. */
export interface RunFacts {
  status: RunStatus
  output: unknown
  recoveryAttempts: number
  /** Names of what is recorded, in order of position. */
  records: string[]
}

export async function factsOf(engine: WorkflowEngine, runId: string): Promise<RunFacts> {
  const run = await engine.getRun(runId)
  const history = await engine.getHistory(runId)
  if (!run || !history) throw new Error(`There is no run "${runId}"`)
  const { status, output, recoveryAttempts } = run
  return { status, output, recoveryAttempts, records: history.records.map(({ name }) => name) }
}

/** Once it has ended. */
export async function endOf(engine: WorkflowEngine, runId: string): Promise<RunFacts> {
  await engine.waitForRun(runId)
  return factsOf(engine, runId)
}

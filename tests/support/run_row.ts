import type { StoredRun } from '../../src/contracts/store.ts'
import { internalsOf, type WorkflowEngine } from '../../src/engine/engine.ts'

/** A run as it is stored, with what applications do not see. */
export async function rowOf(engine: WorkflowEngine, runId: string): Promise<StoredRun> {
  const store = await internalsOf(engine).store()
  const run = await store.getRun(runId)
  if (!run) throw new Error(`There is no run "${runId}"`)
  return run
}

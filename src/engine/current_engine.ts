import { E_NO_ENGINE } from '../errors.ts'
import type { RunHandle, StartOptions, WorkflowClass } from '../types/workflow.ts'

/** The part of the engine that starting a class needs. */
export interface StartsWorkflows {
  start(workflow: WorkflowClass, input: unknown, options?: StartOptions): Promise<RunHandle>
}

/*
 * `Order.start()` is a static call on a class that knows no application, so the engine it means is process-wide: the
 * one of the provider that registered last.
 */
let current: (() => Promise<StartsWorkflows>) | undefined

/** Makes `resolve` the way to the engine that static calls of workflow classes use. Returns the way back. */
export function useEngine(resolve: () => Promise<StartsWorkflows>): () => void {
  current = resolve
  return () => {
    if (current === resolve) current = undefined
  }
}

/** @throws E_NO_ENGINE when no provider has registered. */
export async function currentEngine(call: string): Promise<StartsWorkflows> {
  if (!current) throw new E_NO_ENGINE([call])
  return current()
}

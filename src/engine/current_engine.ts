import { E_NO_ENGINE } from '../errors.ts'
import type { RunHandle, StartOptions, WorkflowClass } from '../types/workflow.ts'

/** The part of the engine that starting a class needs. */
export interface StartsWorkflows {
  start(workflow: WorkflowClass, input: unknown, options?: StartOptions): Promise<RunHandle>
}

/*
 * `Order.start()` is a static call on a class that knows no application, so the engine it means is process-wide: the
 * one of the provider that registered last, of those whose applications have not ended.
 */
const resolvers: { resolve: () => Promise<StartsWorkflows> }[] = []

/** Makes `resolve` the way to the engine that static calls of workflow classes use. Returns the way back. */
export function useEngine(resolve: () => Promise<StartsWorkflows>): () => void {
  const own = { resolve }
  resolvers.push(own)
  return () => {
    const index = resolvers.indexOf(own)
    if (index >= 0) resolvers.splice(index, 1)
  }
}

/** @throws E_NO_ENGINE when no provider has registered. */
export async function currentEngine(call: string): Promise<StartsWorkflows> {
  const current = resolvers.at(-1)
  if (!current) throw new E_NO_ENGINE([call])
  return current.resolve()
}

import { claimKey } from '../core/name.ts'
import { DEFAULT_PRIORITY, type NewRun } from '../core/run.ts'

type Named = { name: string; version: string; origin: string | null; tags: readonly string[] } & {
  timeoutMs?: number | null
}

/** A run of a workflow; what is left out has its default. */
export function newRun(
  workflow: Named,
  run: Pick<NewRun, 'id' | 'namespace' | 'input' | 'createdBy'> & Partial<NewRun>
): NewRun {
  const { name, version, origin, tags, timeoutMs = null } = workflow
  return {
    priority: DEFAULT_PRIORITY,
    parent: null,
    ...run,
    workflow: name,
    version,
    origin,
    claimKey: claimKey(run.namespace, name, version),
    tags: [...new Set([...tags, ...(run.tags ?? [])])],
    timeoutMs,
  }
}

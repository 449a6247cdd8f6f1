import type { StartWrite } from '../../src/core/change_set.ts'
import type { NewRecord } from '../../src/core/history.ts'
import { claimKey } from '../../src/core/name.ts'
import { newRun } from '../../src/testing/conformance/writes.ts'

/** Stores a run of version 1 of a workflow in the way of another process. `input` is encoded. */
export function storedRun(
  workflow: string,
  params: { id: string; input?: string; leaseTo?: string }
): StartWrite {
  const { id, input = '{"v":1}', leaseTo = null } = params
  const key = claimKey('default', workflow, '1')
  return { type: 'start', run: newRun(id, { workflow, claimKey: key, input }), leaseTo }
}

/** A local step in first place that has been delivered. `output` is encoded. */
export function firstStep(name: string, output: string): NewRecord {
  return {
    ...{ seq: 0, kind: 'local_step', name, after: 0, ordinal: 0 },
    ...{ status: 'completed', attempts: 1, output, error: null, durationMs: 0 },
  }
}

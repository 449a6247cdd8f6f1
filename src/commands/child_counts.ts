import type { ChildState } from '../contracts/store.ts'
import { isTerminal, RUN_STATUSES, type RunStatus } from '../core/run.ts'

/** How many of the children that an operation has started stand where. */
export interface ChildCounts {
  started: number
  ended: number
  /** Statuses that no child has are left out. */
  statuses: Partial<Record<RunStatus, number>>
}

export function countChildren(children: readonly ChildState[]): ChildCounts {
  const counts: ChildCounts = { started: children.length, ended: 0, statuses: {} }
  for (const { status } of children) {
    counts.statuses[status] = (counts.statuses[status] ?? 0) + 1
    if (isTerminal(status)) counts.ended++
  }
  return counts
}

/** Such as `3 completed, 1 failed`, in the order of the statuses. */
export function statusesInWords({ statuses }: Pick<ChildCounts, 'statuses'>): string {
  return RUN_STATUSES.filter((status) => statuses[status] !== undefined)
    .map((status) => `${statuses[status]} ${status}`)
    .join(', ')
}

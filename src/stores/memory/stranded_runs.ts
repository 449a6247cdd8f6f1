import type { StrandedReason, StrandedRun } from '../../contracts/store.ts'
import type { InboxEntry, Wait } from '../../core/history.ts'
import { isTerminal, type RunRow } from '../../core/run.ts'
import type { MemoryDatabase } from './memory_database.ts'

/** Live runs that nothing will wake. */
export function strandedRuns(database: MemoryDatabase): StrandedRun[] {
  const stranded: StrandedRun[] = []
  for (const row of database.runs.rows()) {
    const reason = reasonOf(database, row)
    if (reason !== null) stranded.push({ runId: row.id, reason })
  }
  return stranded
}

function reasonOf(database: MemoryDatabase, row: RunRow): StrandedReason | null {
  switch (row.status) {
    case 'pending':
    case 'blocked':
      return row.dueAt === null ? 'no_due_time' : null
    case 'running':
      if (row.dueAt !== null || (row.owner !== null && database.workers.isKnown(row.owner)))
        return null
      return 'unknown_owner'
    case 'suspended':
      return reasonOfSuspended(database, row)
    case 'completed':
    case 'failed':
    case 'cancelled':
    case 'dead':
      return null
  }
}

function reasonOfSuspended(database: MemoryDatabase, row: RunRow): StrandedReason | null {
  const inbox = database.inbox.above(row.id, 0)
  const isDueLater = row.dueAt === null || row.dueAt > database.now()
  if (isDueLater && inbox.some((entry) => isWorthWaking(database, row, entry)))
    return 'unread_inbox'
  if (row.dueAt !== null) return null
  const waits = database.waits.of(row.id)
  if (waits.some((wait) => isMissingChild(database, row, wait))) return 'missing_child'
  const canCome = waits.some((wait) => isSignalOrChildToCome(database, row, wait))
  return canCome && waits.every((wait) => wait.dueAt === null) ? null : 'no_wake'
}

function isWorthWaking(database: MemoryDatabase, row: RunRow, entry: InboxEntry): boolean {
  if (row.wakeSeq === null || row.inboxSeq >= row.wakeSeq || entry.kind !== 'child') return true
  switch (entry.event) {
    case 'started':
    case 'taken':
      return true
    case 'failed':
      return database.runs.get(entry.childId)?.parent?.failFast ?? true
    case 'completed':
      return false
  }
}

function isMissingChild(database: MemoryDatabase, row: RunRow, wait: Wait): boolean {
  const isForChildren = wait.kind === 'child' || wait.kind === 'all' || wait.kind === 'all_settled'
  return isForChildren && childrenOf(database, row, wait).length === 0
}

function isSignalOrChildToCome(database: MemoryDatabase, row: RunRow, wait: Wait): boolean {
  if (wait.token !== null) return !database.waits.isServed({ runId: row.id, seq: wait.seq })
  return childrenOf(database, row, wait).some((child) => !isTerminal(child.status))
}

function childrenOf(database: MemoryDatabase, row: RunRow, wait: Wait): RunRow[] {
  return database.runs
    .childrenOf(row.id)
    .filter(({ parent }) => parent?.awaited === true && parent.seq === wait.seq)
}

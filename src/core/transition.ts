import type { TurnEnd } from './change_set.ts'
import { type NewRun, type RunRow, RUN_FORMAT } from './run.ts'

/**
 * Where a run's status changes. Every function takes the row as it stands under its lock and returns the row
 * to write; none reads a clock.
 */

/** The row of a run that is stored: due at once, or leased to the worker that starts it. */
export function created(run: NewRun, params: { leaseTo: string | null; now: number }): RunRow {
  const { leaseTo, now } = params
  return {
    id: run.id,
    workflow: run.workflow,
    version: run.version,
    claimKey: run.claimKey,
    namespace: run.namespace,
    origin: run.origin,
    status: leaseTo === null ? 'pending' : 'running',
    phase: 'body',
    priority: run.priority,
    dueAt: leaseTo === null ? now : null,
    owner: leaseTo,
    token: leaseTo === null ? 0 : 1,
    recoveryAttempts: 0,
    inboxSeq: 0,
    wakeSeq: null,
    parent: run.parent,
    createdBy: run.createdBy,
    format: RUN_FORMAT,
    errorCode: null,
    createdAt: now,
    startedAt: leaseTo === null ? null : now,
    updatedAt: now,
    endedAt: null,
  }
}

/** Whether a worker may take the run now. */
export function isClaimable(row: RunRow, now: number): boolean {
  return row.dueAt !== null && row.dueAt <= now && row.format <= RUN_FORMAT
}

/** The row of a due run that a worker takes. A run that still reads `running` was lost by its owner: it is counted. */
export function claimed(row: RunRow, params: { owner: string; now: number }): RunRow {
  const { owner, now } = params
  return {
    ...row,
    status: 'running',
    dueAt: null,
    owner,
    token: row.token + 1,
    wakeSeq: null,
    recoveryAttempts: row.recoveryAttempts + (row.status === 'running' ? 1 : 0),
    startedAt: row.startedAt ?? now,
    updatedAt: now,
  }
}

/** Whether `token` is still the right to write this run. */
export function holdsLease(row: RunRow | undefined, token: number): row is RunRow {
  return row !== undefined && row.status === 'running' && row.token === token
}

/** The row of a run whose owner is gone: due at once, still `running`, so that the pickup counts it. */
export function orphaned(row: RunRow, now: number): RunRow {
  return { ...row, dueAt: now, updatedAt: now }
}

/** The row after `count` new inbox entries, of which one at least is `urgent` (not the end of a child, or a failure that cannot wait). */
export function notified(
  row: RunRow,
  params: { count: number; urgent: boolean; now: number }
): RunRow {
  const inboxSeq = row.inboxSeq + params.count
  const worthWaking = params.urgent || row.wakeSeq === null || inboxSeq >= row.wakeSeq
  if (row.status !== 'suspended' || !worthWaking) return { ...row, inboxSeq }
  return { ...row, inboxSeq, dueAt: Math.min(row.dueAt ?? params.now, params.now) }
}

/** The row after a turn's write. */
export function ended(
  row: RunRow,
  end: TurnEnd,
  params: { seenInbox: number; now: number }
): RunRow {
  const { now, seenInbox } = params
  const released = { ...row, owner: null, updatedAt: now }
  switch (end.kind) {
    case 'continue':
      return row
    case 'suspend':
      return {
        ...released,
        status: 'suspended',
        errorCode: null,
        wakeSeq: end.needs === null ? null : seenInbox + end.needs,
        dueAt: row.inboxSeq > seenInbox ? now : earliest(end.dueAt, end.dueIn, now),
      }
    case 'complete':
      return { ...released, status: 'completed', dueAt: null, endedAt: now, errorCode: null }
    case 'fail':
      return {
        ...released,
        status: 'failed',
        dueAt: null,
        endedAt: now,
        errorCode: end.errorCode,
      }
    case 'block':
      return {
        ...released,
        status: 'blocked',
        dueAt: now + end.retryIn,
        errorCode: end.errorCode,
      }
    case 'release':
      return { ...released, status: 'suspended', errorCode: null, wakeSeq: null, dueAt: now }
  }
}

function earliest(dueAt: number | null, dueIn: number | null, now: number): number | null {
  const relative = dueIn === null ? null : now + dueIn
  if (dueAt === null || relative === null) return dueAt ?? relative
  return Math.min(dueAt, relative)
}

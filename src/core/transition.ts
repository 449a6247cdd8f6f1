import type { TurnEnd } from './change_set.ts'
import { isSuspectKey, ordinaryKey, suspectKey } from './name.ts'
import { isTerminal, type NewRun, type RunRow, RUN_FORMAT } from './run.ts'

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
    dueAt: leaseTo === null ? now + (run.dueIn ?? 0) : null,
    owner: leaseTo,
    token: leaseTo === null ? 0 : 1,
    recoveryAttempts: 0,
    parkedAt: null,
    inboxSeq: 0,
    wakeSeq: null,
    parent: run.parent,
    handles: run.handles ?? null,
    routeChain: run.routeChain ?? [],
    handoffs: 0,
    deadlineAt: typeof run.timeoutMs === 'number' ? now + run.timeoutMs : null,
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

/**
 * The row of a run whose owner is gone: due at once, and still `running`, so that the claim counts it. With its
 * `suspectFrom`th counted claim it is a suspect (null = never).
 *
 * The run is `suspended` instead, and so is not counted, in two cases: the owner does not count, as under the
 * development server; or the owner executed a suspect beside it, which most likely killed it. In the second case the
 * run becomes a suspect itself, so that it is counted the next time.
 *
 * A body beside a step that others are executing is parked: suspended, uncounted, until something comes for it; but once
 * only, unless something is recorded meanwhile.
 */
export function orphaned(
  row: RunRow,
  params: {
    now: number
    isCounted: boolean
    suspectFrom: number | null
    /** Its owner executed a suspect. */
    besideSuspect: boolean
    /** When it is to be woken if it is parked; null = no step of it is in flight. */
    parkUntil: number | null
  }
): RunRow {
  const { now, isCounted, suspectFrom, besideSuspect, parkUntil } = params
  const lost = { ...row, dueAt: now, updatedAt: now }
  // The token goes, so that no suspension of its owner is taken for this.
  const released = { owner: null, token: row.token + 1, wakeSeq: null }
  const uncounted = { ...lost, ...released, status: 'suspended' as const }
  if (!isCounted) return uncounted
  if (besideSuspect && !isSuspectKey(row.claimKey))
    return { ...uncounted, claimKey: suspectKey(row.claimKey) }
  if (parkUntil !== null && row.parkedAt === null && row.phase === 'body')
    return { ...uncounted, dueAt: parkUntil, parkedAt: now }
  const isSuspect = suspectFrom !== null && row.recoveryAttempts + 1 >= suspectFrom
  return isSuspect ? { ...lost, claimKey: suspectKey(row.claimKey) } : lost
}

/** The row of a run that has recorded something: it has gone on since it was parked. */
export function progressed(row: RunRow): RunRow {
  return row.parkedAt === null ? row : { ...row, parkedAt: null }
}

/**
 * The row after `count` new inbox entries. `urgent`: at least one of them is not the end of a child, or is a failure
 * that cannot wait.
 */
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
  const claimKey = ordinaryKey(row.claimKey)
  const released = { ...row, claimKey, owner: null, updatedAt: now }
  // While it unwinds or follows, the failure it came from stays on the row.
  const errorCode = row.phase === 'body' ? null : row.errorCode
  const over = { ...released, dueAt: null, endedAt: now, wakeSeq: null }
  switch (end.kind) {
    case 'continue':
      return row
    case 'suspend':
      return {
        ...released,
        status: 'suspended',
        errorCode,
        wakeSeq: end.needs === null ? null : seenInbox + end.needs,
        dueAt: row.inboxSeq > seenInbox ? now : earliest(end.dueAt, end.dueIn, now),
      }
    case 'complete':
      return { ...over, status: 'completed', errorCode: null }
    case 'fail':
      return { ...over, status: 'failed', errorCode: end.errorCode }
    case 'die':
      return { ...over, status: 'dead', errorCode: end.errorCode }
    case 'cancel':
      return { ...over, status: 'cancelled', errorCode: end.errorCode }
    case 'block':
      return {
        ...released,
        status: 'blocked',
        dueAt: now + end.retryIn,
        errorCode: row.phase === 'body' ? end.errorCode : row.errorCode,
      }
    case 'release':
      return { ...released, status: 'suspended', errorCode, wakeSeq: null, dueAt: now }
    case 'unwind':
      return { ...row, phase: 'unwinding', errorCode: end.errorCode, updatedAt: now }
    case 'follow':
      return {
        ...released,
        status: 'suspended',
        phase: 'following',
        handoffs: row.handoffs + 1,
        errorCode: end.errorCode,
        wakeSeq: null,
        dueAt: row.inboxSeq > seenInbox ? now : null,
      }
  }
}

/** Whether the body of a run is not over after its execution time. */
export function isOverdue({ status, phase, deadlineAt }: RunRow, now: number): boolean {
  return !isTerminal(status) && phase === 'body' && deadlineAt !== null && deadlineAt <= now
}

/** The row of a run that is cancelled at once, whatever it was doing. */
export function cancelled(row: RunRow, params: { errorCode: string; now: number }): RunRow {
  const over = ended(
    row,
    { kind: 'cancel', error: '', errorCode: params.errorCode },
    {
      seenInbox: row.inboxSeq,
      now: params.now,
    }
  )
  return { ...over, token: row.token + 1 }
}

/** The row of a run that is to undo its steps before it ends cancelled; due at once, under no lease. */
export function unwinding(row: RunRow, params: { errorCode: string; now: number }): RunRow {
  const { errorCode, now } = params
  return {
    ...row,
    claimKey: ordinaryKey(row.claimKey),
    status: 'suspended',
    phase: 'unwinding',
    owner: null,
    token: row.token + 1,
    errorCode,
    wakeSeq: null,
    dueAt: now,
    updatedAt: now,
  }
}

/** Whether a run may be made live again. */
export function isRequeueable({ status }: Pick<RunRow, 'status'>): boolean {
  return status === 'failed' || status === 'dead'
}

/** The row of a failed or dead run that is made live again: due at once, with its whole budget of recoveries. */
export function requeued(
  row: RunRow,
  params: { now: number; timeoutMs?: number | null | undefined }
): RunRow {
  const { now } = params
  const lastTimeout = row.deadlineAt === null ? null : Math.max(0, row.deadlineAt - row.createdAt)
  const { timeoutMs = lastTimeout } = params
  return {
    ...row,
    claimKey: ordinaryKey(row.claimKey),
    status: 'pending',
    phase: 'body',
    owner: null,
    token: row.token + 1,
    recoveryAttempts: 0,
    parkedAt: null,
    wakeSeq: null,
    errorCode: null,
    dueAt: now,
    endedAt: null,
    updatedAt: now,
    deadlineAt: timeoutMs === null ? null : now + timeoutMs,
  }
}

/** The row of a run that waits for something, due now; null when it runs, is due already, or has ended. */
export function woken(row: RunRow, now: number): RunRow | null {
  if (isTerminal(row.status) || row.status === 'running') return null
  if (row.dueAt !== null && row.dueAt <= now) return null
  return { ...row, dueAt: now, updatedAt: now }
}

function earliest(dueAt: number | null, dueIn: number | null, now: number): number | null {
  const relative = dueIn === null ? null : now + dueIn
  if (dueAt === null || relative === null) return dueAt ?? relative
  return Math.min(dueAt, relative)
}

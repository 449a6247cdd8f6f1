import type { Answer, FlushNews, Write } from '../../../core/change_set.ts'
import { the } from '../../../core/present.ts'
import type { RunRow } from '../../../core/run.ts'
import { created } from '../../../core/transition.ts'
import { type RunColumns, runColumns, toRun } from '../run_rows.ts'
import { type FusedPlan, isTerminalEnd } from './fused_plan.ts'
import { type FusedRow, fusedStatement } from './fused_statement.ts'
import type { Notices } from './notices.ts'
import { channelOf } from './notify.ts'
import type { PostgresSession } from './session.ts'

const EXISTING = `select ${runColumns('r')} from durable_runs r where r.id = any(?::text[])`

/** From how many runs on, where they are joined to one another, a plan made for them is worth its making. */
const MANY = 64

export interface FusedFlush {
  /** In the order of the writes; null = undecided: nothing of the write was applied. */
  answers: (Answer | null)[]
  news: FlushNews
}

/**
 * Applies a batch in one statement. A turn that the locked rows do not decide is left alone, with all of its run's
 * writes. Rejects when nothing was applied.
 */
export async function flushFused(
  session: PostgresSession,
  params: { plan: FusedPlan; writes: readonly Write[]; notices: Notices }
): Promise<FusedFlush> {
  const { plan, writes, notices } = params
  const { from, taking, instances } = notices
  const audience = {
    channel: channelOf(session),
    from,
    taking,
    instances,
    mayBeWaitedFor: (runId: string) => notices.mayBeWaitedFor(runId),
  }
  const statement = fusedStatement(plan, audience)
  const [result] = isLarge(plan)
    ? [await session.runMany(statement)]
    : await session.run([statement])
  const rows = (result?.rows ?? []) as FusedRow[]
  // Without a row nothing is known: least of all that everything was started.
  const { now, started: named } = the(rows[0], 'the answer to a batch of writes')
  const started = new Set(named ?? plan.starts.map(({ run }) => run.id))
  const existing = await readExisting(session, { plan, started })
  const byId = new Map(rows.map((row) => [row.id, row]))

  const answers = writes.map((write): Answer | null => {
    switch (write.type) {
      case 'start': {
        const { run, leaseTo } = write
        const isNew = started.has(run.id)
        const stored = isNew ? created(run, { leaseTo, now }) : existing.get(run.id)
        return stored ? { type: 'started', created: isNew, run: stored } : null
      }
      case 'turn': {
        const row = byId.get(write.runId)
        if (row?.outcome === 'undecided') return null
        if (row?.outcome !== 'accepted') return { type: 'lost' }
        return { type: 'committed', inboxSeq: row.inbox_seq, now }
      }
      case 'signal':
      case 'result':
      case 'cancel':
      case 'requeue':
      case 'wake':
        return null
    }
  })
  return { answers, news: newsOf(plan, { rows, now, started }) }
}

function isLarge({ turns, starts, children }: FusedPlan): boolean {
  const wakes = turns.some(({ mayWake }) => mayWake)
  const hasTags = [...starts, ...children].some(({ run }) => run.tags.length > 0)
  return (wakes || hasTags) && turns.length + starts.length + children.length > MANY
}

/** By a statement that begins after the insertion: what stood in its way may be newer than its own view. */
async function readExisting(
  session: PostgresSession,
  { plan, started }: { plan: FusedPlan; started: ReadonlySet<string> }
): Promise<Map<string, RunRow>> {
  const taken = plan.starts.map(({ run }) => run.id).filter((id) => !started.has(id))
  if (taken.length === 0) return new Map()
  const [result] = await session.run([{ sql: EXISTING, values: [taken] }])
  return new Map(((result?.rows ?? []) as RunColumns[]).map((row) => [row.id, toRun(row)]))
}

function newsOf(
  plan: FusedPlan,
  found: { rows: readonly FusedRow[]; now: number; started: ReadonlySet<string> }
): FlushNews {
  const { rows, now, started } = found
  const accepted = new Set(rows.filter(({ outcome }) => outcome === 'accepted').map(({ id }) => id))
  const due = new Set<string>()
  let dueIn: number | null = null
  for (const { due_at: dueAt, claim_key: claimKey } of rows) {
    if (dueAt === null || dueAt === undefined) continue
    if (dueAt <= now) due.add(claimKey)
    else dueIn = Math.min(dueIn ?? Infinity, dueAt - now)
  }
  for (const { run, leaseTo } of plan.starts)
    if (leaseTo === null && started.has(run.id)) due.add(run.claimKey)
  for (const { run, runId } of plan.children) if (accepted.has(runId)) due.add(run.claimKey)
  const told = rows.filter(({ is_told: isTold, status }) => isTold && status === 'running')
  const ended = plan.turns.filter(({ end, runId }) => isTerminalEnd(end) && accepted.has(runId))
  return {
    due,
    dueIn,
    inbox: new Set(told.flatMap(({ id }) => id ?? [])),
    revoked: new Map(),
    ended: new Set(ended.map(({ runId }) => runId)),
  }
}

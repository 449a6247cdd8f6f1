import type { Answer, FlushNews, Write } from '../../../core/change_set.ts'
import { foldBatch, type Plan } from '../../../core/fold.ts'
import { the } from '../../../core/present.ts'
import type { Flush } from '../../../contracts/store.ts'
import { planStatements } from '../plan_statements.ts'
import { byRun } from '../split.ts'
import { Applied, endedBy } from './applied.ts'
import type { Doubts } from './doubts.ts'
import { errorClass, isTakenId } from './error_class.ts'
import { FRAGMENTS } from './fragments.ts'
import {
  HeldElsewhereError,
  LockedRows,
  lockStatements,
  NO_WAIT,
  NotLockedError,
} from './locked_rows.ts'
import { type Needs, needsOf } from './needs.ts'
import type { Notices } from './notices.ts'
import { notify } from './notify.ts'
import type { PgStatement, PostgresSession } from './session.ts'

export interface GenericFlushOptions {
  doubts: Doubts
  /** Does not wait for rows that others hold: the batch is refused with {@link HeldElsewhereError} if it needs one. */
  skipLocked: boolean
  notices: Notices
}

/** How often a batch begins anew because runs have appeared meanwhile. */
const MAX_REPEATS = 20

/**
 * Applies any batch in a short transaction: one round trip locks and reads, one writes and commits. Where the fold asks
 * for a row that was not foreseen, or a run has appeared meanwhile, nothing is written and the batch begins anew. The
 * rows it asks for come to an end by themselves: a batch that needs many of them, level by level, is not given up.
 */
export async function flushGenerically(
  session: PostgresSession,
  writes: readonly Write[],
  options: GenericFlushOptions
): Promise<Flush> {
  const needs = needsOf(writes)
  for (let repeats = 0; ;) {
    try {
      return await attempt(session, { writes, needs, options })
    } catch (error) {
      if (error instanceof NotLockedError && add(needs, error.missing)) continue
      if (repeats++ === MAX_REPEATS || !isWorthAnother(error, options)) throw error
    }
  }
}

interface Batch {
  writes: readonly Write[]
  needs: Needs
  options: GenericFlushOptions
}

/** What is decided while the rows are locked. */
interface Decision {
  statements: PgStatement[]
  flush: Flush
}

async function attempt(session: PostgresSession, batch: Batch): Promise<Flush> {
  const { writes, needs, options } = batch
  const applied = new Applied(writes, options.doubts)
  const locks = lockStatements(needs, options)
  const settings = options.skipLocked ? [NO_WAIT] : []
  const results = await session.begin([...settings, ...locks.values(), ...applied.statements()])
  const { statements, flush } = await orRolledBack(session, () => {
    applied.read(results.splice(settings.length + locks.size))
    const asked = [...locks.keys()].map((question, index) => {
      const result = the(results[settings.length + index], `the answer to "${question}"`)
      return [question, result] as const
    })
    return decide(session, { batch, applied, state: new LockedRows(needs, new Map(asked)) })
  })
  try {
    await session.commit(statements)
  } catch (error) {
    if (errorClass(error) === 'connection') options.doubts.addUnheard(writes, error)
    throw error
  }
  return flush
}

/** Whatever is thrown between the locks and the commit, a fault of our own included, gives the locks back. */
async function orRolledBack<T>(session: PostgresSession, work: () => T): Promise<T> {
  try {
    return work()
  } catch (error) {
    await session.rollback()
    throw error
  }
}

function decide(
  session: PostgresSession,
  { batch, applied, state }: { batch: Batch; applied: Applied; state: LockedRows }
): Decision {
  const { writes, options } = batch
  const known = new Map<Write, Answer>()
  const ended: string[] = []
  for (const write of writes.filter((one) => options.doubts.has(one))) {
    const answer = applied.answer(write, state)
    if (answer === null) continue
    known.set(write, answer)
    ended.push(...endedBy(write, state))
  }
  const plan = folded(
    writes.filter((write) => !known.has(write)),
    state
  )
  const payload = options.notices.payload(ownedNews(plan, options.notices))
  const notification = payload === null ? [] : [notify(session, payload)]
  return {
    statements: [...planStatements(plan, FRAGMENTS), ...notification],
    flush: { answers: inOrder(writes, known, plan.answers), news: withEnded(plan.news, ended) },
  }
}

/** Throws when the plan needs more than was locked. */
function folded(writes: readonly Write[], state: LockedRows): Plan {
  try {
    const plan = foldBatch(writes, state)
    const unlocked = plan.updates.find(({ row }) => !state.locked.has(row.id))
    if (unlocked) throw new NotLockedError({ runs: [unlocked.row.id] })
    return plan
  } catch (error) {
    if (error instanceof HeldElsewhereError) throw new HeldElsewhereError(held(writes, state))
    throw error
  }
}

/**
 * The writes that need rows which others hold, each run taken by itself. All of them, where none needs one alone: of two
 * signals to one token each would go to the same waiter, and only both together need the next.
 */
function held(writes: readonly Write[], state: LockedRows): readonly Write[] {
  const found = byRun(writes).filter((run) => {
    try {
      foldBatch(
        run.map(({ write }) => write),
        state
      )
      return false
    } catch (error) {
      return error instanceof HeldElsewhereError
    }
  })
  return found.length === 0 ? writes : found.flat().map(({ write }) => write)
}

function isWorthAnother(error: unknown, { skipLocked }: GenericFlushOptions): boolean {
  return error instanceof HeldElsewhereError ? !skipLocked : isTakenId(error)
}

/** Whether the batch needs more than before. */
function add(
  needs: Needs,
  { runs = [], ending = [], tokens = [] }: NotLockedError['missing']
): boolean {
  const count = () => needs.runs.size + needs.ending.size + needs.tokens.size
  const before = count()
  for (const id of runs) needs.runs.add(id)
  for (const id of ending) needs.ending.add(id)
  for (const token of tokens) needs.tokens.add(token)
  return count() > before
}

function ownedNews({ updates, inserts, news }: Plan, notices: Notices) {
  const rows = [...updates, ...inserts].map(({ row }) => row)
  const inbox = rows.filter(({ id }) => news.inbox.has(id))
  const ended = rows.filter(({ id, parent }) => news.ended.has(id) && parent === null)
  return {
    due: news.due,
    inbox: inbox.map(({ id: runId, owner }) => ({ runId, owner })),
    ended: ended.map(({ id }) => id).filter((id) => notices.mayBeWaitedFor(id)),
    revoked: [...news.revoked],
  }
}

function inOrder(
  writes: readonly Write[],
  known: ReadonlyMap<Write, Answer>,
  others: readonly Answer[]
): Answer[] {
  const left = others.values()
  return writes.map((write) => known.get(write) ?? the(left.next().value, 'the answer to a write'))
}

function withEnded(news: FlushNews, ended: readonly string[]): FlushNews {
  return ended.length === 0 ? news : { ...news, ended: new Set([...news.ended, ...ended]) }
}

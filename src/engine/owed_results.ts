import { isAccepted } from '../core/dispatch.ts'
import type { InboxEntry, NewRecord, ResultEntry, Wait } from '../core/history.ts'

/** What has become of steps that were in flight when their body ended. */
export interface OwedResults {
  /** Of those that have been answered, or have not been in time: then it is not known what they have done. */
  records: NewRecord[]
  /** When the first of the others is given up, by the store's clock; null = there are none. */
  dueAt: number | null
}

/** @param params.owed waits of steps in flight; `params.now`: the store's clock */
export function owedResults(params: {
  owed: readonly Wait[]
  inbox: readonly InboxEntry[]
  now: number
}): OwedResults {
  const { owed, inbox, now } = params
  const found: OwedResults = { records: [], dueAt: null }
  for (const wait of owed) {
    const answer = answerTo(wait, inbox)
    const isLate = wait.dueAt === null || wait.dueAt <= now
    if (answer || isLate) found.records.push(recordOf(wait, { answer, now }))
    else found.dueAt = Math.min(found.dueAt ?? Infinity, wait.dueAt!)
  }
  return found
}

/** A success, whatever else was said of the step. */
function answerTo(wait: Wait, inbox: readonly InboxEntry[]): ResultEntry | undefined {
  const answers = inbox.filter(
    (entry): entry is ResultEntry =>
      entry.kind === 'result' && entry.seq === wait.seq && isAccepted(wait, entry)
  )
  return answers.find(({ outcome }) => outcome.status === 'completed') ?? answers[0]
}

function recordOf(
  { seq, kind, name, after, attempts, dispatch, openedAt }: Wait,
  { answer, now }: { answer: ResultEntry | undefined; now: number }
): NewRecord {
  const unknown = { status: 'abandoned' as const }
  return {
    ...{ seq, kind, name, after, ordinal: null, output: null, error: null },
    attempts: dispatch?.attempt ?? attempts,
    durationMs: Math.max(0, now - openedAt),
    ...(answer?.outcome ?? unknown),
  }
}

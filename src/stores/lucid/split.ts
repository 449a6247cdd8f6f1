import type { Answer, FlushNews, Write } from '../../core/change_set.ts'
import { the } from '../../core/present.ts'
import type { Flush } from '../../contracts/store.ts'

/** What became of some writes of a batch: applied, or refused by the database for what is in them. */
export type Attempt = { flush: Flush } | { refused: unknown }

/**
 * Applies the writes of a batch that the database refused as a whole: by run, in halves, until what it refuses is
 * one run alone, whose writes are answered `refused`. Writes of one run stay together and in order: one that came
 * after a refused one must not be applied without it.
 *
 * @param attempt applies some of the writes, or none of them
 */
export function applySplit(
  writes: readonly Write[],
  attempt: (writes: readonly Write[]) => Attempt
): Flush {
  const steps = splitSteps(writes)
  let step = steps.next()
  while (!step.done) step = steps.next(attempt(step.value))
  return step.value
}

/** The same where an attempt takes time. */
export async function applySplitInTurn(
  writes: readonly Write[],
  attempt: (writes: readonly Write[]) => Promise<Attempt>
): Promise<Flush> {
  const steps = splitSteps(writes)
  let step = steps.next()
  while (!step.done) step = steps.next(await attempt(step.value))
  return step.value
}

/** Yields what is to be attempted next, and is told what became of it. */
function* splitSteps(writes: readonly Write[]): Generator<readonly Write[], Flush, Attempt> {
  const answered: { index: number; answer: Answer }[] = []
  const news: FlushNews[] = []
  const runs = byRun(writes)
  const left = runs.length === 0 ? [] : [runs]
  for (let some = left.pop(); some; some = left.pop()) {
    const placed = some.flat()
    const attempt = yield placed.map(({ write }) => write)
    if ('flush' in attempt) {
      const { answers, news: told } = attempt.flush
      news.push(told)
      for (const [at, answer] of answers.entries())
        answered.push({ index: the(placed[at], 'the write of an answer').index, answer })
    } else if (some.length === 1) {
      const answer: Answer = { type: 'refused', error: attempt.refused }
      for (const { index } of placed) answered.push({ index, answer })
    } else {
      const middle = Math.ceil(some.length / 2)
      left.push(some.slice(middle), some.slice(0, middle))
    }
  }
  answered.sort((one, other) => one.index - other.index)
  return { answers: answered.map(({ answer }) => answer), news: mergedNews(news) }
}

export interface Placed {
  write: Write
  /** Place in the batch. */
  index: number
}

/** The writes of each run, in order of each run's first; a signal from outside belongs to no run. */
export function byRun(writes: readonly Write[]): Placed[][] {
  const groups = new Map<string, Placed[]>()
  for (const [index, write] of writes.entries()) {
    const key = keyOf(write)
    const group = groups.get(key)
    if (group) group.push({ write, index })
    else groups.set(key, [{ write, index }])
  }
  return [...groups.values()]
}

/** Names the run of a write; a signal from outside is by itself. */
export function keyOf(write: Write): string {
  switch (write.type) {
    case 'turn':
      return `run ${write.runId}`
    case 'start':
      return `run ${write.run.id}`
    case 'cancel':
    case 'requeue':
    case 'wake':
      return `run ${write.runId}`
    case 'result':
      return `run ${write.result.runId}`
    case 'signal':
      return `signal ${write.signal.id} ${write.signal.token}`
  }
}

/** One that tells what all of them tell. */
export function mergedNews(all: readonly FlushNews[]): FlushNews {
  const dueIn = all.map((news) => news.dueIn).filter((ms) => ms !== null)
  return {
    due: new Set(all.flatMap((news) => [...news.due])),
    dueIn: dueIn.length === 0 ? null : Math.min(...dueIn),
    inbox: new Set(all.flatMap((news) => [...news.inbox])),
    revoked: new Map(all.flatMap((news) => [...news.revoked])),
    ended: new Set(all.flatMap((news) => [...news.ended])),
  }
}

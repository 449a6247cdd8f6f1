import type { Answer, FlushNews, Write } from '../../core/change_set.ts'
import type { Flush } from '../../contracts/store.ts'

/**
 * Applies the writes of a batch that the database refused as a whole: by run, in halves, until what it refuses is
 * one run alone, whose writes are answered `refused`. Writes of one run stay together and in order: one that came
 * after a refused one must not be applied without it.
 *
 * @param attempt applies some of the writes, or throws and has applied none of them
 * @param isDataError whether the error is about what was written, and not about the database's state
 */
export function applySplit(params: {
  writes: readonly Write[]
  attempt: (writes: readonly Write[]) => Flush
  isDataError: (error: unknown) => boolean
}): Flush {
  const { writes, attempt, isDataError } = params
  const answered: { index: number; answer: Answer }[] = []
  const news: FlushNews[] = []

  const apply = (runs: readonly Placed[][]) => {
    const some = runs.flat()
    const answer = (answerOf: (at: number) => Answer | undefined) => {
      for (const [at, { index }] of some.entries()) {
        const given = answerOf(at)
        if (given) answered.push({ index, answer: given })
      }
    }
    try {
      const flush = attempt(some.map(({ write }) => write))
      answer((at) => flush.answers[at])
      news.push(flush.news)
    } catch (error) {
      if (!isDataError(error)) throw error
      if (runs.length === 1) return answer(() => ({ type: 'refused', error }))
      const middle = Math.ceil(runs.length / 2)
      apply(runs.slice(0, middle))
      apply(runs.slice(middle))
    }
  }

  const runs = byRun(writes)
  if (runs.length > 0) apply(runs)
  answered.sort((one, other) => one.index - other.index)
  return { answers: answered.map(({ answer }) => answer), news: merged(news) }
}

interface Placed {
  write: Write
  /** Place in the batch. */
  index: number
}

/** The writes of each run, in order of each run's first; a signal from outside belongs to no run. */
function byRun(writes: readonly Write[]): Placed[][] {
  const groups = new Map<string, Placed[]>()
  for (const [index, write] of writes.entries()) {
    const key = keyOf(write)
    const group = groups.get(key)
    if (group) group.push({ write, index })
    else groups.set(key, [{ write, index }])
  }
  return [...groups.values()]
}

function keyOf(write: Write): string {
  switch (write.type) {
    case 'turn':
      return `run ${write.runId}`
    case 'start':
      return `run ${write.run.id}`
    case 'signal':
      return `signal ${write.signal.id} ${write.signal.token}`
  }
}

function merged(all: readonly FlushNews[]): FlushNews {
  const dueIn = all.map((news) => news.dueIn).filter((ms) => ms !== null)
  return {
    due: new Set(all.flatMap((news) => [...news.due])),
    dueIn: dueIn.length === 0 ? null : Math.min(...dueIn),
    inbox: new Set(all.flatMap((news) => [...news.inbox])),
    ended: new Set(all.flatMap((news) => [...news.ended])),
  }
}

import type { Flush } from '../../contracts/store.ts'
import type { Answer, Write } from '../../core/change_set.ts'
import { the } from '../../core/present.ts'
import { foldBatch } from '../../core/fold.ts'
import type { MemoryDatabase } from './memory_database.ts'

/**
 * Applies a batch. A run with two records for one position is refused with all of its writes, and the rest is
 * folded as if they had not been there.
 */
export function flush(database: MemoryDatabase, writes: readonly Write[]): Flush {
  const refused = new Map<string, Error>()
  for (;;) {
    const accepted = writes.filter((write) => !refused.has(runOf(write) ?? ''))
    const plan = foldBatch(accepted, database.locked())
    const colliding = database.history.colliding(plan.records)
    if (colliding.size === 0) {
      database.apply(plan)
      return { answers: inOrder(writes, { refused, answers: plan.answers }), news: plan.news }
    }
    for (const [runId, error] of colliding) refused.set(runId, error)
  }
}

function inOrder(
  writes: readonly Write[],
  given: { refused: ReadonlyMap<string, Error>; answers: readonly Answer[] }
): Answer[] {
  const left = given.answers.values()
  return writes.map((write) => {
    const error = given.refused.get(runOf(write) ?? '')
    return error
      ? { type: 'refused' as const, error }
      : the(left.next().value, 'the answer to a write')
  })
}

function runOf(write: Write): string | undefined {
  switch (write.type) {
    case 'turn':
    case 'cancel':
    case 'requeue':
    case 'wake':
      return write.runId
    case 'start':
      return write.run.id
    case 'result':
      return write.result.runId
    case 'signal':
      return undefined
  }
}

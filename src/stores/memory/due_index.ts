import { PRIORITIES, RUN_FORMAT, type RunPriority, type RunRow } from '../../core/run.ts'
import { byDue, type DueEntry, DueQueue } from './due_queue.ts'

type Taken = DueEntry & { queue: DueQueue }

/**
 * Runs with a due time by claim key and priority class, so that a claim looks only at runs it may take.
 * Runs of a format this version does not know are not in it.
 */
export class DueIndex {
  #queues = new Map<string, Map<RunPriority, DueQueue>>()

  replace(before: RunRow | undefined, row: RunRow) {
    const queue = this.#queueOf(row)
    const earlier = before && this.#queueOf(before)
    if (row.dueAt === null || row.format > RUN_FORMAT) earlier?.delete(row.id)
    else {
      if (earlier !== queue) earlier?.delete(row.id)
      queue.set(row.id, row.dueAt)
    }
  }

  /** Takes out the ids of at most `limit` due runs of these keys, by priority, then due time. */
  take(claimKeys: readonly string[], params: { limit: number; now: number }): string[] {
    const taken: Taken[] = []
    for (const priority of PRIORITIES) {
      const left = params.limit - taken.length
      if (left <= 0) break
      taken.push(...this.#takeClass(claimKeys, { priority, limit: left, now: params.now }))
    }
    return taken.map(({ runId }) => runId)
  }

  /** The nearest due time among the runs of these keys. */
  nearest(claimKeys: readonly string[]): number | null {
    let nearest: number | null = null
    for (const key of claimKeys) {
      for (const queue of this.#queues.get(key)?.values() ?? []) {
        const dueAt = queue.peek()?.dueAt
        if (dueAt !== undefined) nearest = Math.min(nearest ?? Infinity, dueAt)
      }
    }
    return nearest
  }

  #takeClass(
    claimKeys: readonly string[],
    params: { priority: RunPriority; limit: number; now: number }
  ): Taken[] {
    const candidates: Taken[] = []
    for (const key of new Set(claimKeys)) {
      const queue = this.#queues.get(key)?.get(params.priority)
      for (let count = 0; queue && count < params.limit; count++) {
        const entry = queue.takeDue(params.now)
        if (entry === undefined) break
        candidates.push({ ...entry, queue })
      }
    }
    candidates.sort(byDue)
    for (const { queue, ...entry } of candidates.slice(params.limit)) queue.restore(entry)
    return candidates.slice(0, params.limit)
  }

  #queueOf({ claimKey, priority }: RunRow): DueQueue {
    let classes = this.#queues.get(claimKey)
    if (!classes) this.#queues.set(claimKey, (classes = new Map()))
    let queue = classes.get(priority)
    if (!queue) classes.set(priority, (queue = new DueQueue()))
    return queue
  }
}

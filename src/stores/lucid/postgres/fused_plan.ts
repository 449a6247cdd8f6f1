import type { ChangeSet, NewChild, StartWrite, TurnEnd, Write } from '../../../core/change_set.ts'
import type { NewRecord, NewWait } from '../../../core/history.ts'

/** What the change sets of one run come to. */
export interface FusedTurn {
  runId: string
  token: number
  /** Place of its last change set in the batch: a wake before it is another than one after it. */
  at: number
  end: TurnEnd
  /** Number of the newest inbox entry that was taken. */
  seen: number
  /** It closes waits: a signal that is still unread in its inbox may have to go to somebody else. */
  closes: boolean
}

/** A batch that one statement can write. Starts are in order of id, so that two batches insert in the same order. */
export interface FusedPlan {
  starts: StartWrite[]
  turns: FusedTurn[]
  records: (NewRecord & { runId: string })[]
  opened: (NewWait & { runId: string })[]
  closed: { runId: string; seq: number }[]
  children: (NewChild & { startedBy: string })[]
}

/**
 * The plan of a batch whose every decision can be made from the rows that its statement locks: starts, and turns that
 * go on, suspend or end, with records, waits for time and for children, and children whose ids are free. Null: it must
 * be folded under locks, because it touches tokens, names a run twice in ways that depend on each other, or wants to
 * know what became of a child it starts.
 */
export function fusedPlan(writes: readonly Write[]): FusedPlan | null {
  const builder = new Builder()
  for (const [at, write] of writes.entries()) {
    if (write.type === 'signal') return null
    const isTaken =
      write.type === 'start' ? builder.addStart(write) : builder.addTurn(write, at)
    if (!isTaken) return null
  }
  return builder.plan()
}

export function isTerminalEnd({ kind }: TurnEnd): boolean {
  return kind === 'complete' || kind === 'fail'
}

class Builder {
  #starts: StartWrite[] = []
  #turns = new Map<string, FusedTurn>()
  #records: FusedPlan['records'] = []
  #waits = new Map<string, { runId: string; seq: number; wait: NewWait | null }>()
  #children: FusedPlan['children'] = []
  /** Runs that the batch inserts. */
  #inserted = new Set<string>()

  addStart(write: StartWrite): boolean {
    this.#starts.push(write)
    return this.#insert(write.run.id)
  }

  addTurn(write: ChangeSet, at: number): boolean {
    const { runId, token, returned, signals, children, opened } = write
    const before = this.#turns.get(runId)
    if (returned.length > 0 || signals.length > 0 || this.#inserted.has(runId)) return false
    if (before && (before.token !== token || before.end.kind !== 'continue')) return false
    if (opened.some((wait) => wait.token !== null)) return false
    this.#turns.set(runId, {
      ...{ runId, token, at, end: write.end },
      seen: Math.max(before?.seen ?? 0, write.seenInbox),
      closes: write.closed.length > 0 || (before?.closes ?? false),
    })
    for (const record of write.records) this.#records.push({ ...record, runId })
    for (const seq of write.closed) this.#waits.set(`${runId} ${seq}`, { runId, seq, wait: null })
    for (const wait of opened)
      this.#waits.set(`${runId} ${wait.seq}`, { runId, seq: wait.seq, wait })
    for (const child of children) this.#children.push({ ...child, startedBy: runId })
    return children.every(({ run, acknowledge }) => !acknowledge && this.#insert(run.id))
  }

  plan(): FusedPlan | null {
    for (const id of this.#inserted) if (this.#turns.has(id)) return null
    const waits = [...this.#waits.values()]
    const isEnding = ({ runId }: { runId: string }) => {
      const turn = this.#turns.get(runId)
      return turn !== undefined && isTerminalEnd(turn.end)
    }
    return {
      starts: this.#starts.toSorted((one, other) => compare(one.run.id, other.run.id)),
      turns: [...this.#turns.values()].toSorted((one, other) => compare(one.runId, other.runId)),
      records: this.#records,
      // Of a run that ends nothing stays open, and all of it is cleared at once.
      opened: waits.flatMap((open) =>
        open.wait === null || isEnding(open) ? [] : [{ ...open.wait, runId: open.runId }]
      ),
      closed: waits.filter((open) => open.wait === null && !isEnding(open)),
      children: this.#children,
    }
  }

  #insert(id: string): boolean {
    const isFirst = !this.#inserted.has(id)
    this.#inserted.add(id)
    return isFirst
  }
}

function compare(one: string, other: string): number {
  if (one === other) return 0
  return one < other ? -1 : 1
}

import type { ChangeSet, NewChild, StartWrite, TurnEnd, Write } from '../../../core/change_set.ts'
import type { NewRecord, NewWait } from '../../../core/history.ts'
import type { NewRun } from '../../../core/run.ts'

/** Ends that leave a run in its body, or end it: the others are decided under locks. */
export type FusedEnd = Exclude<TurnEnd, { kind: 'unwind' | 'follow' | 'die' | 'cancel' }>

/** What the change sets of one run come to. */
export interface FusedTurn {
  runId: string
  token: number
  /** Place of its last change set in the batch: a wake before it is another than one after it. */
  at: number
  end: FusedEnd
  /** Number of the newest inbox entry that was taken. */
  seen: number
  /** It closes waits: a signal that is still unread in its inbox may have to go to somebody else. */
  closes: boolean
  /** It ends a run that another may wait for. */
  mayWake: boolean
}

/** Something of a turn; `turn` is the number of that among the turns, from 1. */
type OfTurn<T> = T & { runId: string; turn: number }

/** Which parts of the statement the turns of a batch need. */
export interface TurnShape {
  /** One of them does not go on. */
  changes: boolean
  /** One of them ends its run. */
  ends: boolean
  /** One of them may end a run whose parent waits for it. */
  wakes: boolean
}

/** A batch that one statement can write. Starts are in order of id, so that two batches insert in the same order. */
export interface FusedPlan {
  starts: StartWrite[]
  turns: FusedTurn[]
  records: (OfTurn<NewRecord> & { token: number })[]
  opened: OfTurn<NewWait>[]
  closed: OfTurn<{ seq: number }>[]
  children: OfTurn<NewChild>[]
}

/**
 * The plan of a batch whose every decision can be made from the rows that its statement locks: starts, and turns that
 * go on, suspend or end, with records, waits for time and for children, and children whose ids are free. Null: it must
 * be folded under locks, because it touches tokens, names a run twice in ways that depend on each other, or wants to
 * know what became of a child it starts.
 *
 * @param params.mayHaveParent false only where a run is known to be nobody's child
 */
export function fusedPlan(
  writes: readonly Write[],
  { mayHaveParent }: { mayHaveParent: (runId: string) => boolean }
): FusedPlan | null {
  const builder = new Builder(mayHaveParent)
  for (const [at, write] of writes.entries()) {
    if (write.type !== 'start' && write.type !== 'turn') return null
    const fits = write.type === 'start' ? builder.addStart(write) : builder.addTurn(write, at)
    if (!fits) return null
  }
  return builder.plan()
}

export function isTerminalEnd({ kind }: FusedEnd): boolean {
  return kind === 'complete' || kind === 'fail'
}

export function shapeOf(turns: readonly FusedTurn[]): TurnShape {
  return {
    changes: turns.some(({ end }) => end.kind !== 'continue'),
    ends: turns.some(({ end }) => isTerminalEnd(end)),
    wakes: turns.some(({ mayWake }) => mayWake),
  }
}

class Builder {
  #mayHaveParent: (runId: string) => boolean
  #starts: StartWrite[] = []
  #turns = new Map<string, FusedTurn & { turn: number }>()
  #records: FusedPlan['records'] = []
  #waits = new Map<string, OfTurn<{ seq: number }> & { wait: NewWait | null }>()
  #children: FusedPlan['children'] = []
  /** Runs that the batch inserts. */
  #inserted = new Set<string>()

  constructor(mayHaveParent: (runId: string) => boolean) {
    this.#mayHaveParent = mayHaveParent
  }

  addStart(write: StartWrite): boolean {
    this.#starts.push(write)
    return isPlain(write.run) && this.#insert(write.run.id)
  }

  addTurn(write: ChangeSet, at: number): boolean {
    const { runId, token, end, returned, signals, children, opened, closed } = write
    const before = this.#turns.get(runId)
    if (returned.length > 0 || signals.length > 0) return false
    if (write.records.some(({ kind }) => kind === 'attributes')) return false
    if (before && (before.token !== token || before.end.kind !== 'continue')) return false
    if (opened.some((wait) => wait.token !== null) || !isFused(end)) return false
    const turn = before?.turn ?? this.#turns.size + 1
    this.#turns.set(runId, {
      runId,
      token,
      at,
      end,
      turn,
      seen: Math.max(before?.seen ?? 0, write.seenInbox),
      closes: closed.length > 0 || (before?.closes ?? false),
      mayWake: isTerminalEnd(end) && this.#mayHaveParent(runId),
    })
    const of = { runId, turn }
    for (const record of write.records) this.#records.push({ ...record, ...of, token })
    for (const seq of closed) this.#waits.set(`${runId} ${seq}`, { ...of, seq, wait: null })
    for (const wait of opened)
      this.#waits.set(`${runId} ${wait.seq}`, { ...of, seq: wait.seq, wait })
    for (const child of children) this.#children.push({ ...child, ...of })
    return children.every(
      ({ run, acknowledge }) => !acknowledge && isPlain(run) && this.#insert(run.id)
    )
  }

  plan(): FusedPlan | null {
    for (const id of this.#inserted) if (this.#turns.has(id)) return null
    const waits = [...this.#waits.values()]
    const ending = new Set(
      [...this.#turns.values()].filter(({ end }) => isTerminalEnd(end)).map(({ runId }) => runId)
    )
    // Of a run that ends nothing stays open, and all of it is cleared at once.
    const left = waits.filter(({ runId }) => !ending.has(runId))
    return {
      starts: this.#starts.toSorted((one, other) => compare(one.run.id, other.run.id)),
      turns: [...this.#turns.values()],
      records: this.#records,
      opened: left.flatMap(({ wait, ...of }) => (wait === null ? [] : [{ ...of, ...wait }])),
      closed: left.filter(({ wait }) => wait === null),
      children: this.#children,
    }
  }

  #insert(id: string): boolean {
    const isFirst = !this.#inserted.has(id)
    this.#inserted.add(id)
    return isFirst
  }
}

function isFused(end: TurnEnd): end is FusedEnd {
  return !['unwind', 'follow', 'die', 'cancel'].includes(end.kind)
}

/** Whether the statement knows every column of the run that is not the same for all new ones. */
function isPlain({ dueIn, handles, routeChain }: NewRun): boolean {
  return !dueIn && !handles && !routeChain?.length
}

function compare(one: string, other: string): number {
  if (one === other) return 0
  return one < other ? -1 : 1
}

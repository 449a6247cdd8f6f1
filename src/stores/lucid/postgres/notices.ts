import type { FlushNews } from '../../../core/change_set.ts'

/** Longest payload that PostgreSQL takes is 8,000 bytes. */
export const MAX_BYTES = 7_900
/** For how long the last claim says what this process will take. */
const CLAIM_TELLS_MS = 2_000
/** Starts that are remembered, to know whose ends others may wait for. */
const MAX_STARTED = 10_000

/** News of runs, with what decides whether it concerns others. */
export interface OwnedNews {
  due: ReadonlySet<string>
  /** Running runs that got inbox entries, and who executes them. */
  inbox: readonly { runId: string; owner: string | null }[]
  /** Runs that ended and are nobody's child. */
  ended: readonly string[]
  /** Runs that were taken away from whoever has them, with their new tokens; nobody says who that is. */
  revoked: readonly (readonly [runId: string, token: number])[]
}

/**
 * Decides what of a flush is worth telling other processes: runs that are due and that this process will not take at
 * once, entries for runs that others execute, and ends of runs that others have started.
 */
export class Notices {
  /** Marks our own notifications. */
  readonly from: string
  #instances = new Set<string>()
  /** By claim key, when a claim last found less than it wanted, and whether there was more than it could take since. */
  #taking = new Map<string, { at: number; isOver: boolean }>()
  /** Keys of which runs became due that others were not told of. */
  #withheld = new Set<string>()
  #started = new Set<string>()

  constructor(from: string) {
    this.from = from
  }

  /** Instances of this process. */
  get instances(): readonly string[] {
    return [...this.#instances]
  }

  /** Keys of which this process takes what becomes due: its last claim asked for them, and found less than it wanted. */
  get taking(): readonly string[] {
    const since = performance.now() - CLAIM_TELLS_MS
    return [...this.#taking].flatMap(([key, { at, isOver }]) =>
      at > since && !isOver ? [key] : []
    )
  }

  registered(instance: string): void {
    this.#instances.add(instance)
  }

  removed(instance: string): void {
    this.#instances.delete(instance)
    if (this.#instances.size === 0) this.#taking.clear()
  }

  claimed(claimKeys: readonly string[], { isSaturated }: { isSaturated: boolean }): void {
    if (isSaturated) return this.#takesNoMore(claimKeys)
    const at = performance.now()
    for (const key of claimKeys) this.#taking.set(key, { at, isOver: false })
  }

  /**
   * Runs of these keys became due by what was sent at `sentAt` and is committed. Returns the payload that tells of those
   * withheld then which this process takes no more; null = there are none.
   */
  becameDue(keys: Iterable<string>, sentAt: number): string | null {
    const taking = new Set(this.taking)
    const late: string[] = []
    for (const key of keys) {
      if ((this.#taking.get(key)?.at ?? -Infinity) <= sentAt - CLAIM_TELLS_MS) continue
      if (taking.has(key)) this.#withheld.add(key)
      else late.push(key)
    }
    return this.#ofDue(late)
  }

  /** Runs of these keys are due and were left. Returns the payload that tells what was withheld of them; null = nothing. */
  left(claimKeys: readonly string[]): string | null {
    this.#takesNoMore(claimKeys)
    return this.#ofDue(claimKeys.filter((key) => this.#withheld.delete(key)))
  }

  #takesNoMore(claimKeys: readonly string[]): void {
    for (const key of claimKeys) {
      const taken = this.#taking.get(key)
      if (taken) taken.isOver = true
    }
  }

  #ofDue(keys: readonly string[]): string | null {
    return this.payload({ due: new Set(keys), inbox: [], ended: [], revoked: [] })
  }

  started(runId: string): void {
    this.#started.add(runId)
    if (this.#started.size <= MAX_STARTED) return
    const oldest = this.#started.values().next()
    if (!oldest.done) this.#started.delete(oldest.value)
  }

  /** Whether another process may wait for the end of the run; asked once, at its end. */
  mayBeWaitedFor(runId: string): boolean {
    return !this.#started.delete(runId)
  }

  /** The payload of a notification that does not say what has changed. */
  get anything(): string {
    return JSON.stringify({ from: this.from, isCut: true })
  }

  /** The payload of a notification; null = it concerns nobody else. */
  payload({ due, inbox, ended, revoked }: OwnedNews): string | null {
    const taking = new Set(this.taking)
    const told = {
      from: this.from,
      due: [...due].filter((key) => !taking.has(key)),
      inbox: inbox
        .filter(({ owner }) => owner === null || !this.#instances.has(owner))
        .map(({ runId }) => runId),
      ended,
      revoked,
    }
    const { due: keys, inbox: runs } = told
    if (keys.length + runs.length + ended.length + revoked.length === 0) return null
    const text = JSON.stringify(told)
    return Buffer.byteLength(text) <= MAX_BYTES ? text : this.anything
  }

  /** What a notification says; null = it is our own. Undefined: something has changed, and it does not say what. */
  read(payload: string | undefined): FlushNews | undefined | null {
    const told = parsed(payload)
    if (told?.from === this.from) return null
    if (!told?.from || told.isCut) return undefined
    return {
      due: new Set([...(told.due ?? []), ...(told.new ?? [])]),
      dueIn: null,
      inbox: new Set(told.inbox),
      revoked: new Map(told.revoked),
      ended: new Set(told.ended),
    }
  }
}

interface Told {
  from?: string
  /** There was too much to say. */
  isCut?: boolean
  due?: string[] | null
  new?: string[] | null
  inbox?: string[] | null
  ended?: string[] | null
  revoked?: [string, number][] | null
}

function parsed(payload: string | undefined): Told | null {
  try {
    const value: unknown = JSON.parse(payload ?? '')
    return typeof value === 'object' ? value : null
  } catch {
    return null
  }
}

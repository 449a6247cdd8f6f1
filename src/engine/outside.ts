import { clearTimeout, setTimeout } from 'node:timers'
import type { LoadedRun, Store } from '../contracts/store.ts'
import type { InboxEntry } from '../core/history.ts'
import type { OutsideEvent } from '../replay/operation.ts'
import type { Turn } from '../replay/turn.ts'
import type { RunLogger } from '../types/step.ts'
import type { RunNews } from './news.ts'
import { readPersistently } from './persistent_read.ts'
import type { StoreClock } from './store_clock.ts'

interface OutsideParams {
  runId: string
  turn: Pick<Turn, 'isOver' | 'awaitsOutside' | 'nextDueAt' | 'deliver' | 'elapse'>
  store: Pick<Store, 'load'>
  news: RunNews
  clock: StoreClock
  log: RunLogger
  idlePollMs: number
  /** Number of the newest inbox entry that earlier turns have taken. */
  inboxLoaded: number
}

/** What a turn is told of the outside: the entries of its run's inbox, and that due times have come. */
export class Outside {
  #params: OutsideParams
  #inboxLoaded: number
  #isOpen = false
  #isLooking = false
  #mustLook = false
  #dueTimer: NodeJS.Timeout | undefined
  #unsubscribe: (() => void)[] = []

  constructor(params: OutsideParams) {
    this.#params = params
    this.#inboxLoaded = params.inboxLoaded
  }

  /** Number of the newest inbox entry that was loaded. */
  get inboxLoaded(): number {
    return this.#inboxLoaded
  }

  /** Tells the turn what was loaded, and from now on what comes. `upTo`: the newest entry before that was read. */
  open(loaded: LoadedRun, upTo: number): void {
    const { news, runId } = this.#params
    this.#unsubscribe = [news.onInbox(runId, () => this.look()), news.onAnything(() => this.look())]
    this.#feed(loaded, upTo)
    this.#isOpen = true
  }

  /** The turn is told nothing more until it is opened again. */
  close(): void {
    this.#isOpen = false
    for (const stop of this.#unsubscribe.splice(0)) stop()
    clearTimeout(this.#dueTimer)
  }

  /** The inbox has an entry with this number. */
  reached(inboxSeq: number): void {
    if (inboxSeq > this.#inboxLoaded) this.look()
  }

  /** Looks for what has come from outside; one look at a time, and another if it was asked for meanwhile. */
  look(): void {
    this.#mustLook = true
    if (this.#isLooking || !this.#params.turn.awaitsOutside) return
    this.#isLooking = true
    void this.#lookUntilSeen()
  }

  /** At the next due time of a wait, and now and then as a net, looks for what has come. */
  arm(): void {
    clearTimeout(this.#dueTimer)
    const { turn, clock, idlePollMs } = this.#params
    if (!this.#isOpen || !turn.awaitsOutside) return
    const { nextDueAt } = turn
    const untilDue = nextDueAt === null ? Infinity : nextDueAt - clock.estimate()
    const ms = Math.max(1, Math.min(untilDue, idlePollMs))
    this.#dueTimer = setTimeout(() => this.look(), ms)
    this.#dueTimer.unref()
  }

  async #lookUntilSeen(): Promise<void> {
    const { runId, store, turn, log } = this.#params
    const isWanted = () => this.#isOpen && !turn.isOver
    while (this.#mustLook && isWanted()) {
      this.#mustLook = false
      const request = { runId, resident: true, inboxAfter: this.#inboxLoaded }
      const read = () => store.load([request])
      const loaded = await readPersistently(read, { what: 'The inbox of a run', isWanted, log })
      if (loaded?.[0] && this.#isOpen) this.#feed(loaded[0])
    }
    this.#isLooking = false
    this.arm()
  }

  /**
   * Two looks may overlap, and each entry is taken once. `upTo` is the newest entry before the look: what is missing
   * up to it was given back to others, and would else make the run due at every suspension.
   */
  #feed({ inbox, waits, now }: LoadedRun, upTo = 0): void {
    const unread = inbox.filter(({ no }) => no > this.#inboxLoaded)
    const events = unread.map(eventOf)
    this.#inboxLoaded = Math.max(this.#inboxLoaded, unread.at(-1)?.no ?? 0, upTo)
    this.#params.turn.deliver(events, upTo)
    this.#params.turn.elapse(now, waits)
  }
}

function eventOf(entry: InboxEntry): Exclude<OutsideEvent, { type: 'due' }> {
  switch (entry.kind) {
    case 'signal':
      return { type: 'signal', entry }
    case 'child':
      return { type: 'child', entry }
    case 'result':
      return { type: 'result', entry }
  }
}

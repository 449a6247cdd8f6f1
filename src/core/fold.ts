import type { Answer, ChangeSet, FlushNews, SignalSend, StartWrite, Write } from './change_set.ts'
import type { ChildEntry, HistoryRecord, InboxEntry, SignalEntry, Wait } from './history.ts'
import { created, ended, holdsLease, notified } from './transition.ts'
import { isTerminal, type RunPayloads, type RunRow } from './run.ts'

/** A signal that nobody waited for when it came. */
export interface KeptSignal extends SignalSend {
  receivedAt: number
}

/** An open wait for a signal that has not been given one. */
export interface Waiter {
  runId: string
  seq: number
}

/** What a store reads under its locks while a batch is folded. Reads show the state before the batch. */
export interface LockedState {
  /** The database's clock, one reading for the whole batch. */
  now: number
  run(id: string): RunRow | undefined
  /** Oldest first. */
  keptSignals(token: string): readonly KeptSignal[]
  /** In order of registration. */
  waiters(token: string): readonly Waiter[]
  /** Signals in a run's inbox with a number above `after`, in order. */
  unreadSignals(runId: string, after: number): readonly SignalEntry[]
  /** Whether a signal with this id is kept or lies in an inbox. */
  hasSignal(id: string, token: string): boolean
}

/** A row to write, with the payloads that changed. */
export type RunUpdate = { row: RunRow } & Partial<Pick<RunPayloads, 'output' | 'error'>>
export type RunInsert = { row: RunRow; tags: readonly string[] } & RunPayloads
export type OfRun<T> = T & { runId: string }

/** The rows that a batch comes to: at most one write per row. */
export interface Plan {
  answers: Answer[]
  inserts: RunInsert[]
  updates: RunUpdate[]
  records: OfRun<HistoryRecord>[]
  /** Replace the open operation of the same position, or add it. */
  waits: OfRun<Wait>[]
  /** Waits that have been given their signal, and wait no more for another. */
  served: Waiter[]
  closedWaits: Waiter[]
  /** Runs that ended: none of their waits and inbox entries remain. */
  cleared: string[]
  inbox: OfRun<InboxEntry>[]
  /** Entries of a run up to this number have been taken. */
  taken: { runId: string; upTo: number }[]
  /** Single entries taken out of turn. */
  removed: { runId: string; no: number }[]
  keptSignals: KeptSignal[]
  /** Ids of kept signals that found a receiver. */
  usedSignals: { id: string; token: string }[]
  news: FlushNews
}

/**
 * Folds a batch into one write per row. A change set whose lease is lost contributes nothing; every other one
 * contributes all of its consequences: waking a parent, giving a signal to its waiter, starting children.
 */
export function foldBatch(writes: readonly Write[], locked: LockedState): Plan {
  const fold = new Fold(locked)
  const answers = writes.map((write) => fold.apply(write))
  return fold.plan(answers)
}

type DistributiveOmit<T, K extends PropertyKey> = T extends unknown ? Omit<T, K> : never
type NewEntry = DistributiveOmit<InboxEntry, 'no' | 'receivedAt'> & { receivedAt?: number }

class Fold {
  #now: number
  #inserts = new Map<string, RunInsert>()
  #updates = new Map<string, RunUpdate>()
  #records: OfRun<HistoryRecord>[] = []
  #waits = new Map<string, OfRun<Wait>>()
  #served: Waiter[] = []
  #closed: Waiter[] = []
  #cleared = new Set<string>()
  #inbox: OfRun<InboxEntry>[] = []
  #taken = new Map<string, number>()
  #removed: { runId: string; no: number }[] = []
  #kept: KeptSignal[] = []
  #used = new Map<string, { id: string; token: string }>()
  #due = new Set<string>()
  #told = new Set<string>()
  #ended = new Set<string>()

  constructor(private locked: LockedState) {
    this.#now = locked.now
  }

  apply(write: Write): () => Answer {
    switch (write.type) {
      case 'start':
        return this.#start(write)
      case 'turn':
        return this.#turn(write)
      case 'signal': {
        const delivered = this.#send(write.signal)
        return () => ({ type: 'signalled', delivered })
      }
    }
  }

  plan(answers: (() => Answer)[]): Plan {
    return {
      answers: answers.map((answer) => answer()),
      inserts: [...this.#inserts.values()],
      updates: [...this.#updates.values()],
      records: this.#records,
      waits: [...this.#waits.values()],
      served: this.#served,
      closedWaits: this.#closed,
      cleared: [...this.#cleared],
      inbox: this.#inbox,
      taken: [...this.#taken].map(([runId, upTo]) => ({ runId, upTo })),
      removed: this.#removed,
      keptSignals: this.#kept,
      usedSignals: [...this.#used.values()],
      news: {
        due: this.#due,
        dueIn: this.#nextDueIn(),
        inbox: this.#told,
        ended: this.#ended,
      },
    }
  }

  #nextDueIn(): number | null {
    let next: number | null = null
    for (const { row } of this.#updates.values()) {
      if (row.dueAt === null || row.dueAt <= this.#now) continue
      next = Math.min(next ?? Infinity, row.dueAt - this.#now)
    }
    return next
  }

  #row(id: string): RunRow | undefined {
    return this.#inserts.get(id)?.row ?? this.#updates.get(id)?.row ?? this.locked.run(id)
  }

  #write(row: RunRow, payloads: Pick<RunUpdate, 'output' | 'error'> = {}) {
    const inserted = this.#inserts.get(row.id)
    if (inserted) Object.assign(inserted, payloads, { row })
    else this.#updates.set(row.id, { ...this.#updates.get(row.id), ...payloads, row })
  }

  #start({ run, leaseTo }: StartWrite): () => Answer {
    const existing = this.#row(run.id)
    if (existing) return () => ({ type: 'started', created: false, run: existing })
    const row = created(run, { leaseTo, now: this.#now })
    this.#inserts.set(run.id, { row, input: run.input, output: null, error: null, tags: run.tags })
    if (row.dueAt !== null) this.#due.add(row.claimKey)
    return () => ({ type: 'started', created: true, run: row })
  }

  #turn(changes: ChangeSet): () => Answer {
    const before = this.#row(changes.runId)
    if (!holdsLease(before, changes.token)) return () => ({ type: 'lost' })
    const { runId } = changes
    for (const record of changes.records) {
      const startedAt = this.#now - record.durationMs
      const stored = { generation: 0, token: changes.token, startedAt, endedAt: this.#now }
      this.#records.push({ ...record, ...stored, runId })
    }
    if (changes.seenInbox > 0) this.#taken.set(runId, changes.seenInbox)
    this.#settle(before, changes)
    this.#close(before, changes)
    for (const signal of changes.returned) this.#route(signal, signal.receivedAt)
    for (const { run, acknowledge } of changes.children) {
      const started = this.#start({ type: 'start', run, leaseTo: null })()
      const isNew = started.type === 'started' && started.created
      if ((!isNew && run.parent?.awaited) || acknowledge)
        this.#reply(runId, run.parent, { childId: run.id, event: isNew ? 'started' : 'taken' })
    }
    for (const wait of changes.opened) this.#open(runId, wait)
    for (const signal of changes.signals) this.#send(signal)
    return () => ({
      type: 'committed',
      inboxSeq: this.#row(runId)?.inboxSeq ?? 0,
      now: this.#now,
    })
  }

  #settle(before: RunRow, { end, seenInbox }: ChangeSet) {
    const row = ended(before, end, { seenInbox, now: this.#now })
    if (row === before) return
    if (end.kind === 'complete') this.#write(row, { output: end.output, error: null })
    else if (end.kind === 'fail' || end.kind === 'block') this.#write(row, { error: end.error })
    else this.#write(row)
    if (row.dueAt !== null && row.dueAt <= this.#now) this.#due.add(row.claimKey)
    if (!isTerminal(row.status)) return
    this.#ended.add(row.id)
    this.#cleared.add(row.id)
    if (row.parent?.awaited)
      this.#reply(row.parent.runId, row.parent, { childId: row.id, event: 'ended' }, row.status)
  }

  /** Signals that reached a wait too late to be taken go back. */
  #close(row: RunRow, { closed, end, seenInbox }: ChangeSet) {
    for (const seq of closed) {
      this.#closed.push({ runId: row.id, seq })
      this.#waits.delete(waitKey(row.id, seq))
    }
    const isOver = end.kind === 'complete' || end.kind === 'fail'
    if (row.inboxSeq <= seenInbox || (closed.length === 0 && !isOver)) return
    const inBatch = this.#inbox.filter((e): e is OfRun<SignalEntry> => isSignalOf(e, row.id))
    for (const entry of [...this.locked.unreadSignals(row.id, seenInbox), ...inBatch]) {
      if (!isOver && !closed.includes(entry.seq)) continue
      this.#inbox = this.#inbox.filter((other) => other !== entry)
      this.#removed.push({ runId: row.id, no: entry.no })
      this.#route(entry, entry.receivedAt)
    }
  }

  #open(runId: string, wait: ChangeSet['opened'][number]) {
    const { dueIn, ...rest } = wait
    const dueAt = dueIn === null ? wait.dueAt : this.#now + dueIn
    const stored = { ...rest, dueAt, openedAt: this.#now, runId }
    this.#waits.set(waitKey(runId, wait.seq), stored)
    if (wait.token === null) return
    const kept = this.#kept.findIndex((signal) => signal.token === wait.token)
    const signal =
      this.locked.keptSignals(wait.token).find((s) => !this.#used.has(signalKey(s))) ??
      this.#kept[kept]
    if (!signal) return
    if (signal === this.#kept[kept]) this.#kept.splice(kept, 1)
    else this.#used.set(signalKey(signal), { id: signal.id, token: signal.token })
    this.#give({ runId, seq: wait.seq }, signal, signal.receivedAt)
  }

  /** Whether the signal found somebody who waits for it. */
  #send(signal: SignalSend): boolean {
    if (this.locked.hasSignal(signal.id, signal.token)) return true
    return this.#route(
      { signalId: signal.id, token: signal.token, payload: signal.payload },
      this.#now
    )
  }

  #route(signal: Pick<SignalEntry, 'signalId' | 'token' | 'payload'>, receivedAt: number): boolean {
    const { signalId: id, token, payload } = signal
    const waiter = this.#nextWaiter(token)
    if (waiter) this.#give(waiter, { id, token, payload }, receivedAt)
    else this.#kept.push({ id, token, payload, receivedAt })
    return waiter !== undefined
  }

  #nextWaiter(token: string): Waiter | undefined {
    const isOpen = ({ runId, seq }: Waiter) =>
      !this.#served.some((served) => served.runId === runId && served.seq === seq) &&
      !this.#closed.some((closed) => closed.runId === runId && closed.seq === seq) &&
      !this.#cleared.has(runId)
    const opened = [...this.#waits.values()].filter((wait) => wait.token === token)
    return this.locked.waiters(token).find(isOpen) ?? opened.find(isOpen)
  }

  #give(waiter: Waiter, signal: SignalSend, receivedAt: number) {
    this.#served.push(waiter)
    const { id: signalId, token, payload } = signal
    const entry = { kind: 'signal' as const, seq: waiter.seq, signalId, token, payload, receivedAt }
    this.#deliver(waiter.runId, entry, true)
  }

  #reply(
    runId: string,
    link: { seq: number; index: number; failFast: boolean } | null,
    child: Pick<ChildEntry, 'childId' | 'event'>,
    status?: RunRow['status']
  ) {
    if (link === null) return
    const urgent = child.event !== 'ended' || (link.failFast && status !== 'completed')
    this.#deliver(runId, { kind: 'child', seq: link.seq, index: link.index, ...child }, urgent)
  }

  #deliver(runId: string, entry: NewEntry, urgent: boolean) {
    const row = this.#row(runId)
    if (!row || isTerminal(row.status)) return
    const told = notified(row, { count: 1, urgent, now: this.#now })
    const numbered = { receivedAt: this.#now, ...entry, no: told.inboxSeq, runId }
    this.#inbox.push(numbered)
    this.#write(told)
    if (told.status === 'running') this.#told.add(runId)
    else if (told.dueAt !== null && told.dueAt <= this.#now) this.#due.add(told.claimKey)
  }
}

function isSignalOf(entry: OfRun<InboxEntry>, runId: string): boolean {
  return entry.kind === 'signal' && entry.runId === runId
}

function waitKey(runId: string, seq: number): string {
  return `${runId} ${seq}`
}

function signalKey(signal: { id: string; token: string }): string {
  return `${signal.token} ${signal.id}`
}

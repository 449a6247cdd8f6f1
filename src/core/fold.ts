import type {
  Answer,
  CancelWrite,
  ChangeSet,
  NewChild,
  RequeueWrite,
  ResultWrite,
  StartWrite,
  Write,
} from './change_set.ts'
import type { ChildEntry, HistoryRecord, InboxEntry, SignalEntry } from './history.ts'
import type { LockedState, OfRun, Plan, RunInsert, RunUpdate } from './plan.ts'
import { decode } from './payload.ts'
import type { StoredAttribute } from './search_attributes.ts'
import { SignalExchange } from './signal_exchange.ts'
import {
  cancelled,
  created,
  ended,
  holdsLease,
  isOverdue,
  isRequeueable,
  notified,
  progressed,
  requeued,
  unwinding,
  woken,
} from './transition.ts'
import { isTerminal, type RunRow } from './run.ts'

export type { KeptSignal, LockedState, OfRun, Plan, RunInsert, RunUpdate, Waiter } from './plan.ts'

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
  #inbox = new Map<string, OfRun<InboxEntry>[]>()
  #taken = new Map<string, number>()
  #removed = new Map<string, Set<number>>()
  #cleared = new Set<string>()
  #revoked = new Map<string, number>()
  #retired: Plan['retired'] = []
  #attributes: Plan['attributes'] = []
  #addedTags: Plan['addedTags'] = []
  #removedTags: Plan['removedTags'] = []
  #signals: SignalExchange

  constructor(private locked: LockedState) {
    this.#now = locked.now
    this.#signals = new SignalExchange(locked, {
      isLive: (runId) => this.#isLive(runId),
      deliver: (runId, entry) => this.#deliver(runId, entry, true),
    })
  }

  apply(write: Write): () => Answer {
    switch (write.type) {
      case 'start':
        return this.#start(write)
      case 'turn':
        return this.#turn(write)
      case 'signal': {
        const delivered = this.#signals.send(write.signal)
        return () => ({ type: 'signalled', delivered })
      }
      case 'result':
        return this.#result(write)
      case 'cancel': {
        const answer = this.#cancel(write)
        return () => answer
      }
      case 'requeue':
        return this.#requeue(write)
      case 'wake': {
        const row = this.#row(write.runId)
        const due = row ? woken(row, this.#now) : null
        if (due) this.#write(due)
        return () => ({ type: 'woken', done: due !== null })
      }
    }
  }

  plan(answers: (() => Answer)[]): Plan {
    const isOpen = ({ runId }: { runId: string }) => !this.#cleared.has(runId)
    const { waits, served, closed, kept, used } = this.#signals.plan()
    const rows = [...this.#inserts.values(), ...this.#updates.values()].map(({ row }) => row)
    const inbox = [...this.#inbox.values()].flat().filter(isOpen)
    const taken = [...this.#taken].map(([runId, upTo]) => ({ runId, upTo }))
    const removed = [...this.#removed].flatMap(([runId, nos]) =>
      [...nos].map((no) => ({ runId, no }))
    )
    return {
      answers: answers.map((answer) => answer()),
      inserts: [...this.#inserts.values()],
      updates: [...this.#updates.values()],
      records: this.#records,
      closedWaits: closed.filter(isOpen),
      waits: waits.filter(isOpen),
      served: served.filter(isOpen),
      taken: taken.filter(isOpen),
      removed: removed.filter(isOpen),
      inbox,
      usedSignals: used,
      keptSignals: kept,
      retired: this.#retired,
      attributes: this.#attributes,
      addedTags: this.#addedTags,
      removedTags: this.#removedTags,
      cleared: [...this.#cleared],
      news: {
        due: new Set(rows.filter((row) => this.#isDue(row)).map((row) => row.claimKey)),
        dueIn: this.#nextDueIn(rows),
        inbox: new Set(
          inbox.map(({ runId }) => runId).filter((id) => this.#row(id)?.status === 'running')
        ),
        revoked: this.#revoked,
        ended: new Set(this.#cleared),
      },
    }
  }

  #isDue(row: RunRow): boolean {
    return row.dueAt !== null && row.dueAt <= this.#now
  }

  #nextDueIn(rows: readonly RunRow[]): number | null {
    let next: number | null = null
    for (const row of rows) {
      if (row.dueAt === null || this.#isDue(row)) continue
      next = Math.min(next ?? Infinity, row.dueAt - this.#now)
    }
    return next
  }

  #row(id: string): RunRow | undefined {
    return this.#inserts.get(id)?.row ?? this.#updates.get(id)?.row ?? this.locked.run(id)
  }

  #isLive(id: string): boolean {
    const row = this.#row(id)
    return row !== undefined && !isTerminal(row.status)
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
    return () => ({ type: 'started', created: true, run: row })
  }

  #turn(changes: ChangeSet): () => Answer {
    const { runId } = changes
    const held = this.#row(runId)
    if (!holdsLease(held, changes.token)) return () => ({ type: 'lost' })
    const before = changes.records.length > 0 ? progressed(held) : held
    if (before !== held) this.#write(before)
    for (const record of changes.records) {
      const startedAt = this.#now - record.durationMs
      const stored = { generation: 0, token: changes.token, startedAt, endedAt: this.#now }
      this.#records.push({ ...record, ...stored, runId })
      if (record.kind === 'attributes' && record.status === 'completed')
        this.#attributes.push({ runId, values: attributesOf(record.output) })
    }
    this.#take(runId, changes.seenInbox)
    this.#settle(before, changes)
    for (const seq of changes.closed) this.#signals.close({ runId, seq })
    this.#giveBack(before, changes)
    this.#startChildren(runId, changes)
    for (const wait of changes.opened) this.#open(runId, wait)
    for (const signal of changes.signals) this.#signals.send(signal)
    return () => ({
      type: 'committed',
      inboxSeq: this.#row(runId)?.inboxSeq ?? 0,
      now: this.#now,
    })
  }

  /** Whether anything waits for it is known to the holder of the lease. */
  #result({ result: { runId, ...result } }: ResultWrite): () => Answer {
    const done = this.#isLive(runId)
    if (done) this.#deliver(runId, { kind: 'result', ...result }, true)
    return () => ({ type: 'received', done })
  }

  #take(runId: string, upTo: number) {
    if (upTo <= (this.#taken.get(runId) ?? 0)) return
    this.#taken.set(runId, upTo)
    this.#keepInbox(runId, (entry) => entry.no > upTo)
  }

  #settle(before: RunRow, { end, seenInbox }: ChangeSet) {
    const row = ended(before, end, { seenInbox, now: this.#now })
    if (row === before) return
    this.#write(row, payloadsOf(before, end))
    if (end.kind === 'follow') this.#addedTags.push({ runId: row.id, tag: end.tag })
    if (isTerminal(row.status)) this.#end(row)
  }

  /** Nothing of an ended run remains open, and its parent is told. */
  #end(row: RunRow) {
    this.#cleared.add(row.id)
    const event = row.status === 'completed' ? 'completed' : 'failed'
    if (row.parent?.awaited) this.#reply(row.parent.runId, row.parent, { childId: row.id, event })
  }

  /**
   * The children a run awaits go with it, at every level. What has done nothing yet has nothing to undo, and
   * what is undoing its steps already goes on, with the error it does that for.
   */
  #cancel(write: CancelWrite): Answer & { type: 'cancelled' } {
    const { runId, error, errorCode } = write
    const row = this.#row(runId)
    if (!row) return { type: 'cancelled', outcome: 'unknown' }
    if (isTerminal(row.status) || (write.ifOverdue && !isOverdue(row, this.#now)))
      return { type: 'cancelled', outcome: 'over' }
    const compensates = write.compensate && row.startedAt !== null
    if (compensates && row.phase === 'unwinding')
      return { type: 'cancelled', outcome: 'unwinding', runs: [] }
    const terms = { errorCode, now: this.#now }
    const next = compensates ? unwinding(row, terms) : cancelled(row, terms)
    if (row.status === 'running' || row.status === 'suspended') this.#revoked.set(runId, next.token)
    this.#write(next, { error })
    if (!compensates) {
      this.#end(next)
      const seenInbox = this.#taken.get(runId) ?? 0
      this.#giveBack(row, { closed: [], returned: [], seenInbox })
    }
    const children = this.#awaitedChildren(runId).flatMap(
      (childId) => this.#cancel({ ...write, runId: childId, ifOverdue: false }).runs ?? []
    )
    const runs = [...(compensates ? [] : [next]), ...children]
    return { type: 'cancelled', outcome: compensates ? 'unwinding' : 'cancelled', runs }
  }

  /** Those that this batch has started or made live again among them. */
  #awaitedChildren(runId: string): string[] {
    const ids = new Set(this.locked.awaitedChildren(runId))
    for (const { row } of [...this.#inserts.values(), ...this.#updates.values()])
      if (row.parent?.runId === runId && row.parent.awaited) ids.add(row.id)
    return [...ids]
  }

  #requeue({ runId, token, retire, record, timeoutMs }: RequeueWrite): () => Answer {
    const row = this.#row(runId)
    if (!row || row.token !== token || !isRequeueable(row))
      return () => ({ type: 'requeued', done: false })
    this.#write(requeued(row, { timeoutMs, now: this.#now }), { output: null, error: null })
    if (retire.length > 0) this.#retired.push({ runId, seqs: retire })
    if (record) {
      const stored = { generation: 0, token, startedAt: this.#now, endedAt: this.#now }
      this.#records.push({ ...record, ...stored, runId })
    }
    this.#removedTags.push({ runId, prefix: 'onError:' })
    return () => ({ type: 'requeued', done: true })
  }

  /**
   * Signals that reached a wait too late go on: those the turn has read, and those it has not. One that it read
   * while an earlier change set already gave it back is no longer there, and not given twice.
   */
  #giveBack(
    { id, inboxSeq }: RunRow,
    { closed, seenInbox, returned }: Pick<ChangeSet, 'closed' | 'seenInbox' | 'returned'>
  ) {
    const removed = this.#removed.get(id) ?? new Set<number>()
    const isStored = ({ no }: SignalEntry) =>
      !removed.has(no) && this.locked.unreadSignals(id, no - 1).some((entry) => entry.no === no)
    for (const signal of returned.filter(isStored)) this.#signals.giveBack(signal)

    const isOver = this.#cleared.has(id)
    if (inboxSeq <= seenInbox || (closed.length === 0 && !isOver)) return
    const unread = this.locked.unreadSignals(id, seenInbox).filter(({ no }) => !removed.has(no))
    const inBatch = (this.#inbox.get(id) ?? []).filter((entry) => entry.kind === 'signal')
    const late = [...unread, ...inBatch].filter(({ seq }) => isOver || closed.includes(seq))
    const numbers = new Set(late.map(({ no }) => no))
    for (const { no } of unread) if (numbers.has(no)) removed.add(no)
    if (removed.size > 0) this.#removed.set(id, removed)
    this.#keepInbox(id, ({ no }) => !numbers.has(no))
    for (const signal of late) this.#signals.giveBack(signal)
  }

  #keepInbox(runId: string, isKept: (entry: InboxEntry) => boolean) {
    const entries = this.#inbox.get(runId)
    if (entries) this.#inbox.set(runId, entries.filter(isKept))
  }

  #startChildren(runId: string, { children }: ChangeSet) {
    for (const child of children) {
      const existing = this.#row(child.run.id)
      if (existing) this.#adopt(runId, child, existing)
      else {
        this.#start({ type: 'start', run: child.run, leaseTo: null })
        if (child.acknowledge)
          this.#reply(runId, child.run.parent, { childId: child.run.id, event: 'started' })
      }
    }
  }

  /** A run that the same operation started before is its child still; any other one has taken the id. */
  #adopt(runId: string, { run, acknowledge }: NewChild, existing: RunRow) {
    const { parent } = run
    const isOwn =
      parent !== null &&
      existing.workflow === run.workflow &&
      existing.parent?.runId === parent.runId &&
      existing.parent.seq === parent.seq &&
      existing.parent.index === parent.index
    if (!isOwn) {
      if (parent?.awaited || acknowledge)
        this.#reply(runId, parent, { childId: run.id, event: 'taken' })
      return
    }
    if (acknowledge) this.#reply(runId, parent, { childId: run.id, event: 'started' })
    if (!parent.awaited || !isTerminal(existing.status)) return
    const event = existing.status === 'completed' ? 'completed' : 'failed'
    this.#reply(runId, parent, { childId: run.id, event })
  }

  #open(runId: string, wait: ChangeSet['opened'][number]) {
    if (this.#cleared.has(runId)) return
    const { dueIn, ...rest } = wait
    const dueAt = dueIn === null ? wait.dueAt : this.#now + dueIn
    this.#signals.open({ ...rest, dueAt, openedAt: this.#now, runId })
  }

  #reply(
    runId: string,
    link: { seq: number; index: number; failFast: boolean } | null,
    child: Pick<ChildEntry, 'childId' | 'event'>
  ) {
    if (link === null) return
    const isOrdinaryEnd =
      child.event === 'completed' || (child.event === 'failed' && !link.failFast)
    const urgent = !isOrdinaryEnd
    this.#deliver(runId, { kind: 'child', seq: link.seq, index: link.index, ...child }, urgent)
  }

  #deliver(runId: string, entry: NewEntry, urgent: boolean) {
    const row = this.#row(runId)
    if (!row || isTerminal(row.status)) return
    const told = notified(row, { count: 1, urgent, now: this.#now })
    const numbered = { receivedAt: this.#now, ...entry, no: told.inboxSeq, runId }
    const entries = this.#inbox.get(runId)
    if (entries) entries.push(numbered)
    else this.#inbox.set(runId, [numbered])
    this.#write(told)
  }
}

/** What the record of an operation that sets search attributes holds. */
function attributesOf(output: string | null): Record<string, StoredAttribute | null> {
  return output === null ? {} : (decode(output) as Record<string, StoredAttribute | null>)
}

/** The payloads that an end writes. What a run unwinds or follows for stays until it has ended. */
function payloadsOf(before: RunRow, end: ChangeSet['end']): Pick<RunUpdate, 'output' | 'error'> {
  switch (end.kind) {
    case 'complete':
      return { output: end.output, error: null }
    case 'fail':
    case 'die':
    case 'cancel':
    case 'unwind':
    case 'follow':
      return { error: end.error }
    case 'block':
      return before.phase === 'body' ? { error: end.error } : {}
    case 'continue':
    case 'suspend':
    case 'release':
      return before.phase === 'body' && before.errorCode !== null ? { error: null } : {}
  }
}

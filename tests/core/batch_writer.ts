import type { ChangeSet, NewChild, SignalSend, TurnEnd, Write } from '../../src/core/change_set.ts'
import type { InboxEntry, NewRecord, NewWait, SignalEntry } from '../../src/core/history.ts'
import { isTerminal, type NewRun, type RunRow } from '../../src/core/run.ts'
import type { MemoryDatabase } from '../../src/stores/memory/memory_database.ts'
import {
  COMPLETE,
  dispatched,
  FAIL,
  newRun,
  parentLink,
  record,
  RELEASE,
  result,
  signal,
  signalSend,
  sleep,
  start,
  startLeased,
  SUSPEND,
  suspendOnEnds,
  turn,
  waitForChild,
  waitForSignal,
} from '../../src/testing/conformance/writes.ts'
import type { RandomSource } from './random_source.ts'

const TOKENS = ['go', 'stop', 'next'] as const

const DIE = { ...FAIL, kind: 'die' } as const

type OpenKind = 'signal' | 'sleep' | 'child' | 'step'

/** What the turn of a run remembers from one change set to the next. */
interface Memory {
  nextSeq: number
  seen: number
  open: Map<number, OpenKind>
  /** The children that its operations have started. */
  children: Map<number, NewRun>
  /** Retired operations that waited for children: they are asked for again. */
  again: number[]
}

export interface BatchOptions {
  /** Whether anything is sent to, or waits for, a token. Default true. */
  hasSignals?: boolean
  /** Whether runs are cancelled and requeued. Default false. */
  hasInterventions?: boolean
}

/** The change set that is being put together. */
interface Draft {
  records: NewRecord[]
  opened: NewWait[]
  closed: number[]
  returned: SignalEntry[]
  children: NewChild[]
  signals: SignalSend[]
}

/**
 * Writes what turns, starters and senders of signals may write while a batch is being collected: they see the
 * database as it was before the batch, and what they have written to it themselves.
 */
export class BatchWriter {
  /** Every signal ever sent, and whether a turn has taken it for good. */
  readonly signals = new Map<string, { token: string; isConsumed: boolean }>()
  #memories = new Map<string, Memory>()
  #runs = 0
  private hasSignals: boolean
  #hasInterventions: boolean

  constructor(
    private random: RandomSource,
    private database: MemoryDatabase,
    { hasSignals = true, hasInterventions = false }: BatchOptions = {}
  ) {
    this.hasSignals = hasSignals
    this.#hasInterventions = hasInterventions
  }

  batch(): Write[] {
    const over = new Set<string>()
    return Array.from({ length: 1 + this.random.below(8) }, () => this.#write(over))
  }

  #write(over: Set<string>): Write {
    if (this.#hasInterventions && this.random.chance(0.2)) {
      const intervention = this.random.chance(0.5) ? this.#cancel(over) : this.#requeue(over)
      if (intervention) return intervention
    }
    const running = [...this.database.runs.rows()].filter(
      ({ id, status }) => status === 'running' && !over.has(id)
    )
    const row = this.random.pick(running)
    if (row && this.random.chance(0.7)) {
      if (this.random.chance(0.1)) return turn({ ...row, token: row.token - 1 }, this.#stale(row))
      return this.#turn(row, over)
    }
    if (!this.hasSignals || this.random.chance(0.5)) return this.#start()
    return this.random.chance(0.3) ? this.#result() : this.#signal()
  }

  /** Whatever its run is: turns of it, and of the children it awaits, that come later in the batch are lost. */
  #cancel(over: Set<string>): Write | null {
    const row = this.random.pick([...this.database.runs.rows()])
    if (!row) return null
    if (!isTerminal(row.status)) this.#endWithChildren(row.id, over)
    const compensate = this.random.chance(0.4)
    return {
      type: 'cancel',
      runId: row.id,
      compensate,
      error: '"cancelled"',
      errorCode: 'cancelled',
    }
  }

  #endWithChildren(runId: string, over: Set<string>) {
    over.add(runId)
    for (const { id, parent, endedAt } of this.database.runs.childrenOf(runId))
      if (parent?.awaited && endedAt === null) this.#endWithChildren(id, over)
  }

  #requeue(over: Set<string>): Write | null {
    const rows = [...this.database.runs.rows()]
    const row = this.random.pick(
      rows.filter(({ id, status }) => ['failed', 'dead'].includes(status) && !over.has(id))
    )
    if (!row) return null
    over.add(row.id)
    const memory = this.#memoryOf(row.id)
    const records = this.database.history.live(row.id)
    const retire = records.map(({ seq }) => seq).filter(() => this.random.chance(0.5))
    const waited = [...memory.open].flatMap(([seq, kind]) => (kind === 'child' ? [seq] : []))
    memory.again = [...waited, ...retire].filter((seq) => memory.children.has(seq))
    memory.open.clear()
    memory.seen = row.inboxSeq
    const token = this.random.chance(0.9) ? row.token : row.token - 1
    if (token === row.token) return { type: 'requeue', runId: row.id, token, retire, record: null }
    memory.again = []
    return { type: 'requeue', runId: row.id, token, retire: [], record: null }
  }

  #memoryOf(runId: string): Memory {
    const known = this.#memories.get(runId)
    const memory = known ?? {
      ...{ nextSeq: 0, seen: 0, open: new Map(), children: new Map(), again: [] },
    }
    this.#memories.set(runId, memory)
    return memory
  }

  #start(): Write {
    const isAgain = this.random.chance(0.1)
    const id = `r${isAgain ? this.random.below(this.#runs + 1) : this.#runs++}`
    const terms = { timeoutMs: this.random.chance(0.3) ? 60_000 : null }
    return this.random.chance(0.5) ? startLeased(id, terms) : start(id, terms)
  }

  #signal(): Write {
    const waiting = [...this.signals].filter(([, { isConsumed }]) => !isConsumed)
    const known = this.random.chance(0.2) ? this.random.pick(waiting) : undefined
    if (known) return signal(known[0], known[1].token)
    const { id, token } = this.#newSignal()
    return signal(id, token)
  }

  /** For some run, whatever it waits for. */
  #result(): Write {
    const ids = [...this.database.runs.rows()].map(({ id }) => id)
    const seq = this.random.below(5)
    return result(this.random.pick(ids) ?? 'unknown', { seq, attempt: 1 + this.random.below(2) })
  }

  #newSignal(): SignalSend {
    const id = `s${this.signals.size}`
    const token = this.random.pick(TOKENS) ?? 'go'
    this.signals.set(id, { token, isConsumed: false })
    return signalSend(id, token)
  }

  /** What must not leave a trace. */
  #stale(row: RunRow): Partial<ChangeSet> {
    const run = newRun(`stale child of ${row.id}`, { parent: parentLink(row.id) })
    const { hasSignals } = this
    return {
      records: [record(1_000)],
      opened: [hasSignals ? waitForSignal(1_001, 'go') : sleep(1_001, 5)],
      signals: hasSignals ? [signalSend('stale', 'go')] : [],
      children: [{ run, acknowledge: hasSignals }],
      end: COMPLETE,
    }
  }

  #turn(row: RunRow, over: Set<string>): Write {
    const memory = this.#memoryOf(row.id)
    const lists = { records: [], opened: [], closed: [], returned: [], children: [], signals: [] }
    const draft: Draft = lists
    if (row.phase === 'unwinding') return this.#unwound(row, memory, over)
    this.#takeEntries(row.id, memory, draft)
    this.#giveUpSome(memory, draft)
    const end = this.#end(memory, draft, row.id)
    if (end.kind !== 'continue') over.add(row.id)
    return turn(row, { ...draft, seenInbox: memory.seen, end })
  }

  /** A run that was cancelled and has undone what it did: it takes nothing of what came. */
  #unwound(row: RunRow, memory: Memory, over: Set<string>): Write {
    over.add(row.id)
    const closed = this.random.chance(0.5) ? [...memory.open.keys()] : []
    const end = { kind: 'cancel' as const, error: '"cancelled"', errorCode: 'cancelled' }
    return turn(row, { closed, seenInbox: memory.seen, end })
  }

  #takeEntries(runId: string, memory: Memory, draft: Draft) {
    const unread = this.database.inbox.above(runId, memory.seen)
    for (const entry of unread.slice(0, this.random.below(unread.length + 1))) {
      memory.seen = entry.no
      this.#take(entry, memory, draft)
    }
  }

  #take(entry: InboxEntry, memory: Memory, draft: Draft) {
    if (memory.open.has(entry.seq)) {
      this.#finish(entry.seq, memory, draft)
      const sent = entry.kind === 'signal' && this.signals.get(entry.signalId)
      if (sent) sent.isConsumed = true
    } else if (entry.kind === 'signal') draft.returned.push(entry)
  }

  /** As after a time-out. */
  #giveUpSome(memory: Memory, draft: Draft) {
    for (const [seq, kind] of memory.open)
      if (kind !== 'child' && this.random.chance(0.2)) this.#finish(seq, memory, draft)
  }

  #finish(seq: number, memory: Memory, draft: Draft) {
    memory.open.delete(seq)
    draft.closed.push(seq)
    draft.records.push(record(seq))
  }

  #openSome(memory: Memory, draft: Draft, runId: string) {
    for (const seq of memory.again.splice(0)) {
      const run = memory.children.get(seq)
      if (!run || memory.open.has(seq)) continue
      memory.open.set(seq, 'child')
      draft.opened.push(waitForChild(seq, run.id))
      draft.children.push({ run, acknowledge: false })
    }
    for (let count = this.random.below(3); count > 0; count--) {
      const seq = memory.nextSeq++
      const signals: OpenKind[] = this.hasSignals ? ['signal', 'signal'] : ['child', 'child']
      const kind = this.random.pick<OpenKind>([...signals, 'sleep', 'child', 'step']) ?? 'sleep'
      memory.open.set(seq, kind)
      if (kind === 'sleep') draft.opened.push(sleep(seq, this.random.below(20)))
      if (kind === 'step')
        draft.opened.push(dispatched(seq, { dueIn: this.random.below(20), id: `d${runId}:${seq}` }))
      if (kind === 'signal') draft.opened.push(waitForSignal(seq, this.random.pick(TOKENS) ?? 'go'))
      if (kind === 'child') this.#startChild(seq, { memory, draft, runId })
    }
    if (this.hasSignals && this.random.chance(0.2)) draft.signals.push(this.#newSignal())
  }

  #startChild(
    seq: number,
    { memory, draft, runId }: { memory: Memory; draft: Draft; runId: string }
  ) {
    const isTaken = this.random.chance(0.1)
    const id = `r${isTaken ? this.random.below(this.#runs + 1) : this.#runs++}`
    const parent = parentLink(runId, { seq, failFast: this.random.chance(0.5) })
    draft.opened.push(waitForChild(seq, id))
    const acknowledge = this.hasSignals && this.random.chance(0.2)
    const run = newRun(id, { parent })
    memory.children.set(seq, run)
    draft.children.push({ run, acknowledge })
  }

  #end(memory: Memory, draft: Draft, runId: string): TurnEnd {
    const chance = this.random.next()
    if (chance < 0.1) return COMPLETE
    if (chance < 0.15) return this.#hasInterventions && this.random.chance(0.3) ? DIE : FAIL
    if (chance < 0.2)
      return { kind: 'block', error: '""', errorCode: 'non_determinism', retryIn: 3 }
    this.#openSome(memory, draft, runId)
    if (chance < 0.3) return RELEASE
    if (chance < 0.6) return { kind: 'continue' }
    return this.#suspension(memory)
  }

  /** Sleeps until something due, unless nothing but children and signals is open. */
  #suspension({ open }: Memory): TurnEnd {
    const kinds = [...open.values()]
    const isTimed = kinds.includes('sleep') || kinds.includes('step')
    if (kinds.length === 0 || isTimed) return { ...SUSPEND, dueIn: 5 }
    return kinds.includes('signal') ? SUSPEND : suspendOnEnds(1 + this.random.below(kinds.length))
  }
}

/** Where each unconsumed signal lies: kept, or in which inbox. */
export function placesOf(database: MemoryDatabase): Map<string, string[]> {
  const places = new Map<string, string[]>()
  const put = (id: string, place: string) => places.set(id, [...(places.get(id) ?? []), place])
  for (const token of TOKENS)
    for (const { id } of database.kept.of(token)) put(id, `kept for ${token}`)
  for (const { id } of database.runs.rows())
    for (const entry of database.inbox.above(id, 0))
      if (entry.kind === 'signal') put(entry.signalId, `inbox of ${id}`)
  return places
}

/** Everything a database holds, in an order of its own. */
export function contentsOf(database: MemoryDatabase) {
  const ids = [...database.runs.rows()].map(({ id }) => id).toSorted()
  const runs = ids.map((id) => ({
    row: database.runs.get(id),
    payloads: database.runs.payloads(id),
    tags: database.runs.tags(id),
    history: database.history.all(id),
    waits: database.waits.of(id).map((wait) => ({
      ...wait,
      isServed: database.waits.isServed({ runId: id, seq: wait.seq }),
    })),
    inbox: database.inbox.above(id, 0),
  }))
  const tokens = TOKENS.map((token) => ({
    token,
    kept: database.kept.of(token),
    waiters: database.waits.waiters(token),
  }))
  return { runs, tokens }
}

/** Ids of the runs that have ended. */
export function endedRuns(database: MemoryDatabase): string[] {
  return [...database.runs.rows()].filter(({ status }) => isTerminal(status)).map(({ id }) => id)
}

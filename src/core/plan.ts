import type { Answer, FlushNews, SignalSend } from './change_set.ts'
import type { HistoryRecord, InboxEntry, SignalEntry, Wait } from './history.ts'
import type { RunPayloads, RunRow } from './run.ts'
import type { StoredAttribute } from './search_attributes.ts'

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
  /** Oldest first: by `receivedAt`, then in order of arrival. */
  keptSignals(token: string): readonly KeptSignal[]
  /** In order of registration. */
  waiters(token: string): readonly Waiter[]
  /** Signals in a run's inbox with a number above `after`, in order. */
  unreadSignals(runId: string, after: number): readonly SignalEntry[]
  /** Ids of the runs that a run has started and awaits, and that have not ended. */
  awaitedChildren(runId: string): readonly string[]
  /** Whether a signal with this id is kept or lies in an inbox. */
  hasSignal(id: string, token: string): boolean
}

/** A row to write, with the payloads that changed. */
export type RunUpdate = { row: RunRow } & Partial<Pick<RunPayloads, 'output' | 'error'>>
export type RunInsert = { row: RunRow; tags: readonly string[] } & RunPayloads
export type OfRun<T> = T & { runId: string }

/**
 * The rows that a batch comes to: at most one write per row. A store that writes them in the order of these
 * fields is right. `records` must not replace a stored one: a position that is taken fails the whole batch.
 */
export interface Plan {
  answers: Answer[]
  inserts: RunInsert[]
  updates: RunUpdate[]
  records: OfRun<HistoryRecord>[]
  closedWaits: Waiter[]
  /** Replace the open operation of the same position, or add it; it has then not been given a signal. */
  waits: OfRun<Wait>[]
  /** Waits that have been given their signal, and wait no more for another. */
  served: Waiter[]
  /** Entries of a run up to this number have been taken. */
  taken: { runId: string; upTo: number }[]
  /** Single entries taken out of turn. */
  removed: { runId: string; no: number }[]
  /** In order of `no` within each run; none of them is in `taken` or `removed`. */
  inbox: OfRun<InboxEntry>[]
  /** Kept signals that found a receiver. */
  usedSignals: { id: string; token: string }[]
  /** In order of arrival; one of them may also be in `usedSignals`, when it has come back. */
  keptSignals: KeptSignal[]
  /**
   * Positions that leave the live history of a run for a generation above all others of it. A handoff among them is
   * renamed from `onError:` to `onError:retried:`.
   */
  retired: { runId: string; seqs: readonly number[] }[]
  /** Search attributes that replace those of the same name; null = it goes. */
  attributes: { runId: string; values: Readonly<Record<string, StoredAttribute | null>> }[]
  addedTags: { runId: string; tag: string }[]
  /** Tags that begin with the prefix go. */
  removedTags: { runId: string; prefix: string }[]
  /** Runs that ended: none of their waits and inbox entries remain. The other fields hold none of these runs. */
  cleared: string[]
  news: FlushNews
}

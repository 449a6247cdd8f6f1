import type { NewWait } from '../core/history.ts'
import type { OpenCall } from './open_call.ts'
import type { Mismatch } from './recorded.ts'

/** Why a turn cannot go on: the history and the code do not fit, or the body awaited something foreign. */
export type TurnFault =
  | { code: 'non_determinism'; mismatch: Mismatch }
  /** By what it was found: a query of the body, or what the body did after it. */
  | { code: 'foreign_await'; by: { query: string } | { call: string } | 'end' }

/** How a body ended. */
export type BodyOutcome =
  | { status: 'completed'; value: unknown }
  | { status: 'failed'; error: unknown }
  | { status: 'not_awaited'; seq: number; name: string }

export type TurnState =
  /** Something here is still at work: steps in flight, or a body that awaits what it should not. */
  | { kind: 'live'; stalled: boolean }
  /** Everything it awaits is outside. */
  | { kind: 'parked'; terms: ParkedTerms }
  | { kind: 'ended'; outcome: BodyOutcome }
  | { kind: 'faulted'; fault: TurnFault }

/** When a parked turn is to be woken. */
export interface ParkedTerms {
  /** The earliest known due time of its waits, by the store's clock. */
  dueAt: number | null
  /** The shortest duration of those that are still to be written. */
  dueIn: number | null
  /** Ends of children without which waking is not worth it; null = anything wakes. */
  needs: number | null
}

/** When a turn with these open operations is to be woken. `opened`: those whose waits are still to be written. */
export function parkedTerms(calls: readonly OpenCall[], opened: readonly NewWait[]): ParkedTerms {
  const unwritten = new Set(opened.map(({ seq }) => seq))
  const known = calls.filter(({ seq }) => !unwritten.has(seq))
  return {
    dueAt: least([...opened, ...known].map(({ dueAt }) => dueAt)),
    dueIn: least(opened.map(({ dueIn }) => dueIn)),
    needs: least(calls.map(({ operation }) => operation.needs())),
  }
}

function least(numbers: readonly (number | null)[]): number | null {
  return numbers.reduce((a, b) => (a === null || b === null ? (a ?? b) : Math.min(a, b)), null)
}

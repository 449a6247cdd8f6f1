import { compensationSeq, handoffSeq, type OperationKind, requeueSeq } from '../core/history.ts'

/** Where an operation stands, in words: what no body calls has a position below zero. */
export function placeOf({ seq, kind }: { seq: number; kind: OperationKind }): string {
  if (kind === 'compensation') return `undoes ${compensationSeq(seq)}`
  if (kind === 'handoff') return `handoff ${handoffSeq(0) - seq}`
  if (kind === 'requeue') return `requeue ${requeueSeq(0) - seq}`
  return String(seq)
}

/** Which operation of its parent started a run; below zero there are only handlers of failures. */
export function placeInParent({ seq }: { seq: number }): string {
  return seq < 0 ? placeOf({ seq, kind: 'handoff' }) : String(seq)
}

/** The order in which a run did things: what undoes and what follows comes after the body's operations. */
export function byPlace(a: { seq: number }, b: { seq: number }): number {
  const isBodys = ({ seq }: { seq: number }) => (seq < 0 ? 1 : 0)
  return isBodys(a) - isBodys(b) || (a.seq < 0 ? b.seq - a.seq : a.seq - b.seq)
}

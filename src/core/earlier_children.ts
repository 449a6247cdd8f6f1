import { hashOf } from './hash.ts'
import { type HistoryRecord, type NewRecord, requeueSeq } from './history.ts'
import { deriveId } from './name.ts'
import { decode, encode } from './payload.ts'

/** A child that a body started before its run was requeued, at a position at which it may now start another one. */
export interface EarlierChild {
  id: string
  seq: number
  index: number
  workflow: string
  /** Of the encoded input. */
  inputHash: string
}

/** What a requeue records of them, below the positions of the body. */
export function recordOf(children: readonly EarlierChild[], requeues: number): NewRecord {
  return {
    seq: requeueSeq(requeues),
    kind: 'requeue',
    name: 'requeue',
    after: 0,
    ordinal: null,
    status: 'completed',
    attempts: 0,
    // Ours, and as long as there are children: a limit is for what users give.
    output: encode(children, { maxBytes: Infinity }),
    error: null,
    durationMs: 0,
  }
}

/** The children that a requeued run has started before, by position: empty for all other runs. */
export class EarlierChildren {
  #byPlace: Map<string, EarlierChild[]>

  constructor(history: readonly HistoryRecord[]) {
    const all = history
      .filter(({ kind }) => kind === 'requeue')
      .flatMap(({ output }) => decode(output!) as EarlierChild[])
    this.#byPlace = Map.groupBy(all, placeOf)
  }

  /**
   * The id of a child: the one that was started at its position with the same workflow and input, or one that no
   * earlier child there has.
   */
  idOf(
    runId: string,
    child: { suffix: string; seq: number; index: number; workflow: string; input: string }
  ): string {
    const { suffix, workflow, input } = child
    const earlier = this.#byPlace.get(placeOf(child))
    if (!earlier) return deriveId(runId, suffix)
    const inputHash = hashOf(input)
    const same = earlier.find((one) => one.workflow === workflow && one.inputHash === inputHash)
    const times = new Set(earlier.map(({ id }) => id)).size
    return same?.id ?? deriveId(runId, `${suffix}~${times}`)
  }
}

function placeOf({ seq, index }: { seq: number; index: number }): string {
  return `${seq}.${index}`
}

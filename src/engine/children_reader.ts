import type { ChildOutcome } from '../core/history.ts'
import type { Store } from '../contracts/store.ts'
import type { KnownChild } from '../replay/operation.ts'
import type { RunLogger } from '../types/step.ts'
import { readPersistently } from './persistent_read.ts'

interface ChildrenReaderParams {
  runId: string
  store: Pick<Store, 'childStates' | 'childOutcomes'>
  log: RunLogger
  /** Once it is aborted nobody wants to know any more. */
  signal: AbortSignal
}

/** Reads what became of the children of one run's operations: tried again until it is known, or nobody wants it. */
export class ChildrenReader {
  #params: ChildrenReaderParams

  constructor(params: ChildrenReaderParams) {
    this.#params = params
  }

  /** Where each child of the operation at `seq` stands. */
  states(seq: number): Promise<readonly KnownChild[]> {
    const { store, runId } = this.#params
    return this.#read(() => store.childStates({ runId, seq }))
  }

  /** How those that have ended came to their end. */
  outcomes(seq: number): Promise<readonly ChildOutcome[]> {
    const { store, runId } = this.#params
    return this.#read(() => store.childOutcomes({ runId, seq }))
  }

  async #read<T>(read: () => Promise<T[]>): Promise<T[]> {
    const { signal, log } = this.#params
    const isWanted = () => !signal.aborted
    const what = 'What became of children'
    return (await readPersistently(read, { what, isWanted, log })) ?? []
  }
}

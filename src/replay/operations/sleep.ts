import { encode } from '../../core/payload.ts'
import { type Operation, WAITS_FOR_NOTHING } from '../operation.ts'

const NOTHING = encode(undefined)

/** Waits for a time: a duration from the write on, or an instant. */
export function sleepOperation(until: { dueIn: number } | { dueAt: number }): Operation {
  return {
    ...WAITS_FOR_NOTHING,
    kind: 'sleep',
    name: 'sleep',
    begin: () => ({ kind: 'wait', wait: until, children: [] }),
    resume: () => ({ kind: 'wait', wait: null, children: [] }),
    take: (event) =>
      event.type === 'due'
        ? { kind: 'outcome', outcome: { status: 'completed', output: NOTHING } }
        : { kind: 'ignored' },
    receive: () => undefined,
  }
}

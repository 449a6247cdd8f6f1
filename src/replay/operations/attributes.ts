import type { Operation } from '../operation.ts'
import { stepOperation } from './step.ts'

/**
 * Checks search attributes and writes them with the record of that: the record's output is what is stored.
 *
 * @param check resolves to the values as they are stored; what it rejects with fails the operation
 */
export function attributesOperation(check: () => Promise<unknown>): Operation {
  const step = stepOperation({
    kind: 'attributes',
    name: 'search attributes',
    work: { local: check },
    call: { retries: 0 },
    compensation: null,
  })
  return {
    ...step,
    receive(outcome, attempts) {
      step.receive(outcome, attempts)
    },
  }
}

import { decode } from '../../core/payload.ts'
import { decodeError } from '../../core/serialized_error.ts'
import { StepError } from '../../errors.ts'
import type { StepCall } from '../../types/step.ts'
import {
  type Compensation,
  type Operation,
  type StepTask,
  WAITS_FOR_NOTHING,
} from '../operation.ts'

interface StepParams {
  kind: 'local_step' | 'step' | 'attributes'
  name: string
  work: StepTask['work']
  call: Pick<StepCall<never>, 'retries' | 'timeoutMs' | 'backoffMs'>
  compensation: Compensation | null
}

/** Code that runs in this process: a local step, or a registered handler over the in-process transport. */
export function stepOperation({ kind, name, work, call, compensation }: StepParams): Operation {
  const { retries, timeoutMs, backoffMs } = call
  const task = (seq: number): StepTask => ({
    ...{ seq, name, work, attempts: 0 },
    call: { retries, timeoutMs, backoffMs },
  })
  let position = 0
  return {
    ...WAITS_FOR_NOTHING,
    kind,
    name,
    compensation,
    begin(seq) {
      position = seq
      return { kind: 'run', task: task(seq) }
    },
    /** Found between two attempts: waits for the time of the next, or goes on at once. */
    resume(wait) {
      position = wait.seq
      if (wait.dueAt !== null) return { kind: 'wait', wait: null, children: [] }
      return { kind: 'run', task: task(wait.seq) }
    },
    take: (event) =>
      event.type === 'due' ? { kind: 'run', task: task(position) } : { kind: 'ignored' },
    receive(outcome, attempts) {
      if (outcome.status === 'completed') return decode(outcome.output)
      throw new StepError(decodeError(outcome.error), attempts)
    },
  }
}

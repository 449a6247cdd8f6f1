import type { SignalSend } from '../../core/change_set.ts'
import { hashOf } from '../../core/hash.ts'
import { deriveId } from '../../core/name.ts'
import { decode, encode } from '../../core/payload.ts'
import { decodeError, encodeError } from '../../core/serialized_error.ts'
import { SignalTimeoutError } from '../../errors.ts'
import { type Operation, WAITS_FOR_NOTHING } from '../operation.ts'

const NOTHING = encode(undefined)

/** Waits for the next signal with a token, or for its time-out. */
export function signalOperation(params: { token: string; timeoutMs: number | null }): Operation {
  const { token, timeoutMs } = params
  return {
    ...WAITS_FOR_NOTHING,
    kind: 'signal',
    name: token,
    begin: () => ({ kind: 'wait', wait: { token, dueIn: timeoutMs }, children: [] }),
    resume: () => ({ kind: 'wait', wait: null, children: [] }),
    take(event) {
      if (event.type === 'signal')
        return {
          kind: 'outcome',
          outcome: { status: 'completed', output: event.entry.payload },
        }
      if (event.type !== 'due') return { kind: 'ignored' }
      const error = encodeError({
        name: 'SignalTimeoutError',
        message: `No signal "${token}" came within ${timeoutMs} ms`,
        code: 'signal_timeout',
      })
      return { kind: 'outcome', outcome: { status: 'failed', error } }
    },
    receive(outcome) {
      if (outcome.status === 'completed') return decode(outcome.output)
      throw new SignalTimeoutError(decodeError(outcome.error), 1)
    },
  }
}

/** Sends a signal with the write that records it. */
export function sendSignalOperation(params: {
  runId: string
  token: string
  payload: string
}): Operation {
  const { runId, token, payload } = params
  return {
    ...WAITS_FOR_NOTHING,
    kind: 'send_signal',
    name: token,
    begin(seq) {
      // A requeued run may send something else at the same position.
      const id = deriveId(runId, `:${seq}:${hashOf(payload)}`)
      const signals: SignalSend[] = [{ id, token, payload }]
      return { kind: 'done', output: NOTHING, children: [], signals }
    },
    resume: () => ({ kind: 'wait', wait: null, children: [] }),
    receive: () => undefined,
  }
}

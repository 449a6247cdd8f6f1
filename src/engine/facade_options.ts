import { checkOption, checkOptions } from '../core/known_options.ts'
import { checkRunId } from '../core/name.ts'
import type { RunHandle } from '../types/workflow.ts'

/** Of a call that waits for a run. */
export interface WaitOptions {
  /** Ms until it gives up; default never. */
  timeoutMs?: number | undefined
}

export interface CancelOptions {
  /** Whether the run undoes its steps first; default false. */
  compensate?: boolean | undefined
  /** Message of the error that the run ends with. */
  reason?: string | undefined
}

/** Throws E_UNKNOWN_OPTION or E_INVALID_OPTION. */
export function checkWaitOptions(of: string, options: WaitOptions): void {
  checkOptions(of, options, { timeoutMs: true })
  const { timeoutMs } = options
  checkOption(of, {
    name: 'timeoutMs',
    value: timeoutMs,
    expected: 'milliseconds as a number, at least 0',
    isValid: typeof timeoutMs === 'number' && timeoutMs >= 0,
  })
}

/** Throws E_UNKNOWN_OPTION or E_INVALID_OPTION. */
export function checkCancelOptions(options: CancelOptions): void {
  const of = 'engine.cancel()'
  checkOptions(of, options, { compensate: true, reason: true })
  const { compensate, reason } = options
  const isBoolean = typeof compensate === 'boolean'
  checkOption(of, {
    name: 'compensate',
    value: compensate,
    expected: 'true or false',
    isValid: isBoolean,
  })
  const isText = typeof reason === 'string'
  checkOption(of, { name: 'reason', value: reason, expected: 'a text', isValid: isText })
}

/** The id that a caller gave, or that of a handle. Throws E_INVALID_NAME for what is no id. */
export function givenRunId(run: string | RunHandle): string {
  return checkRunId(Object(run) === run ? (run as RunHandle).runId : run)
}

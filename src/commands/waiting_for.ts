import { isInFlight } from '../core/dispatch.ts'
import { errorLine } from '../core/error_line.ts'
import type { OpenOperation } from '../engine/run_history.ts'
import { statusesInWords, type ChildCounts } from './child_counts.ts'
import { readableInstant } from './readable.ts'

/** What an open operation waits for, in words. `children`: of those that it has started. */
export function waitingFor(wait: OpenOperation, children: ChildCounts): string {
  const until = wait.dueAt === null ? '' : ` until ${readableInstant(wait.dueAt)}`
  switch (wait.kind) {
    case 'signal':
      return `signal "${wait.token}"${until}`
    case 'sleep':
      return `time${until}`
    case 'child':
      return `run ${wait.target}${children.started > 0 ? `, ${statusesInWords(children)}` : ''}`
    case 'all':
    case 'all_settled':
      return `children: ${children.ended} of ${children.started} started have ended (${statusesInWords(children)})`
    case 'start_child':
      return `the start of run ${wait.target}`
    case 'local_step':
    case 'step':
    case 'attributes':
      return isInFlight(wait)
        ? `an answer to attempt ${wait.attempts + 1}${until}`
        : nextAttempt(wait)
    case 'compensation':
      return `to undo ${wait.name}: ${nextAttempt(wait)}`
    case 'handoff':
      return `its handler run ${wait.target}`
    case 'send_signal':
    case 'now':
    case 'requeue':
      return 'nothing'
  }
}

function nextAttempt({ attempts, error, dueAt }: OpenOperation): string {
  const at = dueAt === null ? '' : ` at ${readableInstant(dueAt)}`
  if (error === undefined) return `attempt ${attempts + 1}${at}`
  return `attempt ${attempts + 1}${at}, after ${errorLine(error)}`
}

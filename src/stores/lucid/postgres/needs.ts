import type { Write } from '../../../core/change_set.ts'
import { openedWaits } from '../opened_waits.ts'

/** The rows that a batch is certain or likely to touch. */
export interface Needs {
  /** Runs whose rows are locked. */
  runs: Set<string>
  /** Of these, those that may tell the run that started them of their end: its row is locked too. */
  ending: Set<string>
  /** Runs that may exist already: read, not locked. */
  wanted: Set<string>
  /** Signal tokens: locked before any run, with the runs that wait for them. */
  tokens: Set<string>
  /** Waits that the batch opens, by token. */
  opened: Map<string, number>
  /** Ids of the signals that the batch sends. */
  signals: Set<string>
}

/** What can be told from the writes alone; what the fold asks for beyond is added, and the batch begun anew. */
export function needsOf(writes: readonly Write[]): Needs {
  const needs: Needs = {
    runs: new Set(),
    ending: new Set(),
    wanted: new Set(),
    tokens: new Set(),
    opened: openedWaits(writes),
    signals: new Set(),
  }
  for (const write of writes) addNeeds(needs, write)
  return needs
}

const ENDS: ReadonlySet<string> = new Set(['complete', 'fail', 'die', 'cancel'])

function addNeeds(needs: Needs, write: Write): void {
  switch (write.type) {
    case 'start':
      needs.wanted.add(write.run.id)
      return
    case 'signal':
      needs.tokens.add(write.signal.token)
      needs.signals.add(write.signal.id)
      return
    case 'result':
      needs.runs.add(write.result.runId)
      return
    case 'requeue':
    case 'wake':
      needs.runs.add(write.runId)
      return
    case 'cancel':
      needs.runs.add(write.runId)
      needs.ending.add(write.runId)
      return
    case 'turn':
      needs.runs.add(write.runId)
      if (ENDS.has(write.end.kind)) needs.ending.add(write.runId)
      for (const { run } of write.children) needs.wanted.add(run.id)
      for (const { token } of write.opened) if (token !== null) needs.tokens.add(token)
      for (const { token, signalId } of write.returned) {
        needs.tokens.add(token)
        needs.signals.add(signalId)
      }
      for (const { token, id } of write.signals) {
        needs.tokens.add(token)
        needs.signals.add(id)
      }
  }
}

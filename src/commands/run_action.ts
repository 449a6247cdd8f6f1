import type { WorkflowEngine } from '../engine/engine.ts'
import { EXIT_CODES, type ExitCode } from './exit_codes.ts'
import { type RunSelection, selectedPages } from './run_selection.ts'

/** What an action came to, run by run. */
export interface ActionResult {
  /** Ids of runs to which something was done. */
  done: string[]
  /** Ids of runs with which nothing was to be done. */
  unchanged: string[]
  errors: { runId: string; message: string }[]
}

/** Changes one run. Resolves to false where nothing is to be done. */
export type RunAction = (runId: string) => Promise<boolean>

/** So many runs are treated at once: their writes share flushes. */
const AT_ONCE = 16

/** Does something to each selected run; one that fails keeps no other from it. */
export async function actOnRuns(
  engine: WorkflowEngine,
  { selection, act }: { selection: Exclude<RunSelection, { kind: 'none' }>; act: RunAction }
): Promise<ActionResult> {
  const result: ActionResult = { done: [], unchanged: [], errors: [] }
  if (selection.kind === 'ids') await actOn(selection.runIds, { act, result })
  else
    for await (const page of selectedPages(engine, selection))
      await actOn(
        page.map(({ id }) => id),
        { act, result }
      )
  return result
}

async function actOn(
  runIds: readonly string[],
  { act, result }: { act: RunAction; result: ActionResult }
): Promise<void> {
  for (let start = 0; start < runIds.length; start += AT_ONCE) {
    const group = runIds.slice(start, start + AT_ONCE)
    const settled = await Promise.allSettled(group.map((runId) => act(runId)))
    for (const [index, outcome] of settled.entries()) {
      const runId = group[index] ?? ''
      if (outcome.status === 'rejected')
        result.errors.push({ runId, message: messageOf(outcome.reason) })
      else result[outcome.value ? 'done' : 'unchanged'].push(runId)
    }
  }
}

export function exitCodeOf({ done, errors }: ActionResult): ExitCode {
  if (errors.length > 0) return EXIT_CODES.error
  return done.length > 0 ? EXIT_CODES.done : EXIT_CODES.nothing
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

import { decode } from '../core/payload.ts'
import type { RunRow } from '../core/run.ts'
import { E_UNKNOWN_WORKFLOW } from '../errors.ts'
import type { WorkflowCtx } from '../types/context.ts'
import type { WorkflowBody } from './definitions.ts'
import type { Registry } from './registry.ts'
import { parse } from './schema.ts'

/** What a worker finds when it wants to execute a run. */
export type FoundBody =
  | { kind: 'ready'; run: (ctx: WorkflowCtx) => unknown }
  /** The stored input cannot be read or does not fit its schema; `run` gets it as it is stored. */
  | { kind: 'refused'; error: unknown; run: (ctx: WorkflowCtx) => unknown }
  /** An unknown workflow, or a file or a container that fails: another worker may have it. */
  | { kind: 'missing'; error: Error }

/** The body of a run, to be called with its input as the schema parses it. Parsed is always the stored input. */
export async function bodyOf(
  row: RunRow,
  { input, registry }: { input: string; registry: Registry }
): Promise<FoundBody> {
  const { workflow, version } = row
  const definition = registry.workflow(workflow, version)
  if (!definition)
    return missing(
      new E_UNKNOWN_WORKFLOW([`${workflow}@${version}`, 'This worker does not have it'])
    )
  let body: WorkflowBody
  try {
    body = await definition.createBody()
  } catch (error) {
    return missing(error instanceof Error ? error : new Error(String(error)))
  }
  let stored: unknown
  try {
    stored = decode(input)
    const value = await parse(definition.input, stored, 'invalid_input')
    return { kind: 'ready', run: (ctx) => body(ctx, value) }
  } catch (error) {
    return { kind: 'refused', error, run: (ctx) => body(ctx, stored) }
  }
}

function missing(error: Error): FoundBody {
  return { kind: 'missing', error }
}

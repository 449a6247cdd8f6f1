import { decode } from '../core/payload.ts'
import type { RunRow } from '../core/run.ts'
import { E_UNKNOWN_WORKFLOW } from '../errors.ts'
import type { WorkflowCtx } from '../types/context.ts'
import type { WorkflowBody } from './definitions.ts'
import type { Registry } from './registry.ts'
import { parse } from './step_runner.ts'

/**
 * The body of a run with its parsed input, or why there is none: an unknown workflow, a file or a container that
 * fails. An input that cannot be read or does not fit is a failure of the run instead.
 */
export async function bodyOf(
  row: RunRow,
  { input, registry }: { input: string; registry: Registry }
): Promise<Error | ((ctx: WorkflowCtx) => unknown)> {
  const { workflow, version } = row
  const definition = registry.workflow(workflow, version)
  if (!definition)
    return new E_UNKNOWN_WORKFLOW([`${workflow}@${version}`, 'This worker does not have it'])
  let body: WorkflowBody
  try {
    body = await definition.createBody()
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error))
  }
  try {
    const value = await parse(definition.input, decode(input), 'invalid_input')
    return (ctx) => body(ctx, value)
  } catch (error) {
    return () => {
      throw error
    }
  }
}

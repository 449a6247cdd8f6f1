import { markOnError } from './engine/inline_handlers.ts'
import type { WorkflowCtx } from './types/context.ts'
import type { ErrorWithCode, OnErrorInput } from './types/workflow.ts'

/**
 * Makes a method of a workflow class the handler of its failures with `code` (a text, or an error class with a static
 * one; left out: of those that no other route takes). The method becomes the workflow `<workflow>.onError.<method>`,
 * and what it returns the output of the run that failed. For several codes, decorate it several times.
 *
 * @throws E_INVALID_WORKFLOW when it decorates anything else than a method of instances
 */
export function OnError(code?: string | ErrorWithCode) {
  return <Handler extends (ctx: WorkflowCtx, failure: OnErrorInput<any>) => any>(
    target: object,
    key: string | symbol,
    descriptor: TypedPropertyDescriptor<Handler>
  ): void => markOnError(target, { key: String(key), code, method: descriptor?.value })
}

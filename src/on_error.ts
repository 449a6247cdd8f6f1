import { markOnError } from './engine/inline_handlers.ts'
import type { WorkflowCtx } from './types/context.ts'
import type { ErrorWithCode, OnErrorInput } from './types/workflow.ts'

/**
 * Makes a method of a workflow class the handler of its failures with `code` (a text, or an error class with a static
 * one; left out: of those that no other route takes). The method becomes the workflow `<workflow>.onError.<method>`.
 */
export function OnError(code?: string | ErrorWithCode) {
  return (
    target: object,
    key: string | symbol,
    _descriptor: TypedPropertyDescriptor<(ctx: WorkflowCtx, failure: OnErrorInput<any>) => any>
  ): void => markOnError(target, String(key), code)
}

import { E_INVALID_WORKFLOW } from '../errors.ts'
import type { FailureRoute, WorkflowClass, WorkflowOptions } from '../types/workflow.ts'

/** A method of a workflow class that is a workflow of its own: it takes care of runs of the class. */
export interface InlineHandler {
  /** Name of the workflow it becomes. */
  name: string
  /** Name of the method. */
  key: string
  takes: { dead: true } | { code: FailureRoute['code'] }
}

const ON_ERROR: unique symbol = Symbol.for('@adonis-agora/durable:on_error')

interface Marked {
  [ON_ERROR]?: { key: string; code: FailureRoute['code'] }[]
}

/** Marks a method as the handler of failures with this code. */
export function markOnError(target: object, key: string, code: FailureRoute['code']): void {
  const owner = target.constructor as Marked
  const own = Object.hasOwn(owner, ON_ERROR) ? (owner[ON_ERROR] ?? []) : []
  owner[ON_ERROR] = [...own, { key, code }]
}

/** The handlers that a class declares beside its body. Throws E_INVALID_WORKFLOW. */
export function inlineHandlers(target: WorkflowClass, options: WorkflowOptions): InlineHandler[] {
  const { name } = options
  const owner = target as Marked
  const marked = Object.hasOwn(owner, ON_ERROR) ? (owner[ON_ERROR] ?? []) : []
  const handlers: InlineHandler[] = marked.map(({ key, code }) => ({
    name: `${name}.onError.${key}`,
    key,
    takes: { code },
  }))
  const prototype: unknown = target.prototype
  const hasDeadLetter =
    typeof prototype === 'object' &&
    prototype !== null &&
    typeof Reflect.get(prototype, 'deadLetter') === 'function'
  if (!hasDeadLetter) return handlers
  if (options.deadLetterWorkflow !== undefined)
    throw new E_INVALID_WORKFLOW([
      name,
      'it declares both a deadLetter() method and a deadLetterWorkflow option. Keep one',
    ])
  return [...handlers, { name: `${name}.dlq`, key: 'deadLetter', takes: { dead: true } }]
}

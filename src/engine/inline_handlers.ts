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

interface Mark {
  key: string
  code: FailureRoute['code']
}

interface Marked {
  name: string
  [ON_ERROR]?: Mark[]
}

/** Marks a method as the handler of failures with this code. Throws E_INVALID_WORKFLOW for anything but a method. */
export function markOnError(
  target: object,
  { key, code, method }: Mark & { method: unknown }
): void {
  const owner = (typeof target === 'function' ? target : target.constructor) as Marked
  if (typeof target === 'function' || typeof method !== 'function')
    throw new E_INVALID_WORKFLOW([
      owner.name,
      `@OnError() decorates methods of instances only, and "${key}" is not one. Remove "static"`,
    ])
  owner[ON_ERROR] = [...marksOf(owner), { key, code }]
}

function marksOf(owner: Marked): Mark[] {
  return Object.hasOwn(owner, ON_ERROR) ? (owner[ON_ERROR] ?? []) : []
}

/** Marks of a class and of those it extends; a method that a class marks again has its own marks alone. */
function inheritedMarks(target: object): Mark[] {
  const parent: unknown = Object.getPrototypeOf(target)
  const above = typeof parent === 'function' ? inheritedMarks(parent) : []
  const own = marksOf(target as Marked)
  const isMarkedAgain = (key: string) => own.some((mark) => mark.key === key)
  return [...above.filter(({ key }) => !isMarkedAgain(key)), ...own]
}

/** The handlers that a class declares or inherits beside its body. Throws E_INVALID_WORKFLOW. */
export function inlineHandlers(target: WorkflowClass, options: WorkflowOptions): InlineHandler[] {
  const { name } = options
  const handlers: InlineHandler[] = inheritedMarks(target).map(({ key, code }) => ({
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

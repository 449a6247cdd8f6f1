import { parseDuration } from '../core/duration.ts'
import { type KeysOf, unknownKey } from '../core/known_options.ts'
import { MAX_CODE_LENGTH } from '../core/serialized_error.ts'
import { namesWorkflow } from '../core/workflow_name.ts'
import { E_INVALID_DURATION, E_INVALID_WORKFLOW, FatalError } from '../errors.ts'
import type { FailureRoute, LazyWorkflowTarget, WorkflowOptions } from '../types/workflow.ts'
import type { WorkflowDefinition } from './definitions.ts'
import { codeOf } from './failure_routing.ts'

type Given = Pick<WorkflowOptions, 'executionTimeout' | 'deadLetterWorkflow' | 'onError'>
type Checked = Pick<WorkflowDefinition, 'timeoutMs' | 'deadLetterWorkflow' | 'onError'>

/** The checked options of a workflow that say what becomes of its failures. Throws E_INVALID_WORKFLOW. */
export function failureOptions(name: string, given: Given): Checked {
  const { executionTimeout, deadLetterWorkflow = null, onError = [] } = given
  const refuse = (problem: string, cause?: Error): never => {
    throw new E_INVALID_WORKFLOW([name, problem], cause && { cause })
  }
  if (!Array.isArray(onError))
    refuse('"onError" is not a list. Pass a list of routes: [{ code, workflow }]')
  const seen = new Map<string | null, FailureRoute>()
  for (const route of onError) {
    const problem = problemOf(route)
    if (problem !== null) refuse(problem)
    const code = codeOf(route.code)
    const first = seen.get(code)
    if (first) refuse(ambiguous(code, [first.workflow, route.workflow]))
    seen.set(code, route)
  }
  if (deadLetterWorkflow !== null && !namesWorkflow(deadLetterWorkflow))
    refuse(`"deadLetterWorkflow" does not name a workflow. ${HOW_TO_NAME}`)
  const timeoutMs = executionTimeout === undefined ? null : durationOf(executionTimeout, refuse)
  return { timeoutMs, deadLetterWorkflow, onError }
}

function durationOf(value: string | number, refuse: (problem: string, cause: Error) => never) {
  try {
    return parseDuration(value)
  } catch (error) {
    if (error instanceof E_INVALID_DURATION) refuse(`"executionTimeout": ${error.message}`, error)
    throw error
  }
}

const ROUTE_KEYS: KeysOf<FailureRoute> = { code: true, workflow: true }
const HOW_TO_NAME =
  'Give its name, its class, a workflowRef(), or a function that returns one of these'

function problemOf(route: unknown): string | null {
  if (typeof route !== 'object' || route === null)
    return '"onError" holds something that is not a route. A route is { code, workflow }'
  const unknown = unknownKey(route, Object.keys(ROUTE_KEYS))
  if (unknown)
    return `a route in "onError" has the key "${unknown.key}", which does not exist. ${unknown.hint}`
  const { code, workflow } = route as Partial<FailureRoute>
  const recorded = codeOf(code)
  if (typeof code === 'function' && !isOwnCode(code))
    return (
      `the class ${code.name} in "onError" has no static "code" of its own, so no failure can be recognised by it. ` +
      "Add: static readonly code = '...', and pass it to super()"
    )
  if (code !== undefined && (typeof recorded !== 'string' || !isCode(recorded)))
    return (
      `a route in "onError" has an invalid code, ${JSON.stringify(recorded ?? String(code))}: use 1 to ` +
      `${MAX_CODE_LENGTH} characters without control characters, or leave it out for the route that takes the rest`
    )
  if (!namesWorkflow(workflow))
    return `the route for "${recorded ?? '*'}" in "onError" does not name a workflow. ${HOW_TO_NAME}`
  return null
}

/** The code of FatalError itself is recorded on no failure. */
function isOwnCode(code: FailureRoute['code'] & object): boolean {
  const own = codeOf(code)
  return typeof own === 'string' && own !== FatalError.code
}

function isCode(code: string): boolean {
  return code.length >= 1 && code.length <= MAX_CODE_LENGTH && !/\p{Cc}/u.test(code)
}

function ambiguous(
  code: string | null,
  handlers: readonly [LazyWorkflowTarget, LazyWorkflowTarget]
): string {
  const [first, second] = handlers.map((handler) => `"${shownHandler(handler)}"`)
  return code === null
    ? `"onError" has two routes without a code, to ${first} and to ${second}: only one can take what no other does`
    : `"onError" has two routes for the code "${code}", to ${first} and to ${second}. Keep one`
}

/** A function is shown as it is written: what it returns is not known yet. */
function shownHandler(handler: LazyWorkflowTarget): string {
  if (typeof handler === 'string') return handler
  if (typeof handler !== 'function') return handler.name
  const named = 'workflow' in handler ? handler.workflow?.name : undefined
  return named ?? String(handler)
}

import { parseDuration } from '../core/duration.ts'
import { E_INVALID_WORKFLOW } from '../errors.ts'
import type { FailureRoute, WorkflowOptions } from '../types/workflow.ts'
import type { WorkflowDefinition } from './definitions.ts'
import { codeOf } from './failure_routing.ts'

type Given = Pick<WorkflowOptions, 'executionTimeout' | 'deadLetterWorkflow' | 'onError'>
type Checked = Pick<WorkflowDefinition, 'timeoutMs' | 'deadLetterWorkflow' | 'onError'>

/** The checked options of a workflow that say what becomes of its failures. Throws E_INVALID_WORKFLOW. */
export function failureOptions(name: string, given: Given): Checked {
  const { executionTimeout, deadLetterWorkflow = null, onError = [] } = given
  const seen = new Set<string | null>()
  for (const route of onError) {
    const code = checkedCode(name, route)
    if (seen.has(code))
      throw new E_INVALID_WORKFLOW([
        name,
        code === null
          ? '"onError" has two routes without a code: only one can take what no other does'
          : `"onError" has two routes for the code "${code}". Keep one`,
      ])
    seen.add(code)
  }
  const timeoutMs = executionTimeout === undefined ? null : parseDuration(executionTimeout)
  return { timeoutMs, deadLetterWorkflow, onError }
}

function checkedCode(name: string, route: FailureRoute): string | null {
  const code = codeOf(route.code)
  if (route.code !== undefined && code === null)
    throw new E_INVALID_WORKFLOW([
      name,
      `the class ${String(Reflect.get(Object(route.code), 'name'))} in "onError" has no static "code"`,
    ])
  if (route.workflow === undefined)
    throw new E_INVALID_WORKFLOW([
      name,
      `the route for "${code ?? '*'}" in "onError" names no workflow`,
    ])
  return code
}

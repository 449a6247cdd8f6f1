import { inspect } from 'node:util'
import { isClass, isWorkflowRef } from '../core/workflow_name.ts'
import { E_CIRCULAR_WORKFLOW_IMPORT, E_INVALID_WORKFLOW } from '../errors.ts'
import type { LazyWorkflowTarget, WorkflowClass } from '../types/workflow.ts'
import { fileOfUrl } from './call_site.ts'
import type { Registry } from './registry.ts'
import {
  isWorkflowClass,
  workflowDefinitions,
  workflowOptions,
  type ClassEnvironment,
} from './workflow_class.ts'

/** A workflow by name; without a version: its default one. */
export interface NamedWorkflow {
  name: string
  version?: string | undefined
}

/** What resolving a target needs. */
export interface TargetEnvironment extends ClassEnvironment {
  registry: Registry
}

/** The file in which an error was thrown; undefined when that was no module. */
function throwingFile(error: Error): string | undefined {
  const place = /(file:\/\/[^\s)]+?|\/[^\s)]+?)(?::\d+)+/.exec(error.stack ?? '')?.[1]
  return place === undefined ? undefined : (fileOfUrl(place) ?? undefined)
}

/**
 * Two files that import each other die with a ReferenceError at the class that is not there yet. Returns the error
 * that says what to do about it; any other error as it is.
 *
 * @param file the file whose import failed, when it is known
 */
export function explainCircularImport(error: unknown, file?: string): unknown {
  if (!(error instanceof ReferenceError)) return error
  const missing = /Cannot access '(.+)' before initialization/.exec(error.message)?.[1]
  if (missing === undefined) return error
  const reader = throwingFile(error)
  const other = file === undefined || file === reader ? `the file of "${missing}"` : file
  return new E_CIRCULAR_WORKFLOW_IMPORT([reader ?? 'a workflow file', other], { cause: error })
}

/** A target for a message: the name of the workflow where it has one. */
export function shownTarget(target: unknown): string {
  if (typeof target === 'string') return target
  if (isWorkflowClass(target)) return target.workflow?.name ?? target.name
  return isWorkflowRef(target) ? target.name : inspect(target, { depth: 0 })
}

function nameOfClass(target: WorkflowClass, environment: TargetEnvironment): NamedWorkflow {
  const { name, version = '1' } = workflowOptions(target)
  const { registry, inDevelopment } = environment
  const known = registry.workflow(name, version)
  if (known?.source === target) return { name, version }
  // A reloaded class of a discovered file: the definition imports its file again by itself.
  if (inDevelopment && known && known.file !== null) return { name, version }

  const before = known?.source
  const replace = inDevelopment && isWorkflowClass(before) && before.name === target.name
  for (const definition of workflowDefinitions(target, environment))
    registry.registerWorkflow(definition, { replace })
  return { name, version }
}

/** The workflow that a string, a class or a ref names; undefined for anything else. */
export function nameOfWorkflow(
  target: unknown,
  environment: TargetEnvironment
): NamedWorkflow | undefined {
  if (typeof target === 'string') return { name: target }
  if (isWorkflowClass(target) || isClass(target))
    return nameOfClass(target as WorkflowClass, environment)
  if (isWorkflowRef(target)) return { name: target.name, version: target.version }
  return undefined
}

async function callLazily(target: () => unknown): Promise<unknown> {
  try {
    return await target()
  } catch (error) {
    throw explainCircularImport(error)
  }
}

/**
 * The workflow that a string, a class, a ref or a function names; a class that is not registered is registered.
 * Functions may return any of these, or a module whose default export is a class.
 *
 * @throws E_INVALID_WORKFLOW, E_WORKFLOW_ALREADY_REGISTERED when the class shares its name with another one,
 * E_CIRCULAR_WORKFLOW_IMPORT
 */
export async function resolveWorkflowTarget(
  target: LazyWorkflowTarget,
  environment: TargetEnvironment
): Promise<NamedWorkflow> {
  let current: unknown = target
  // A function that returns functions would otherwise be followed for ever.
  for (let depth = 0; depth < 3; depth++) {
    const named = nameOfWorkflow(current, environment)
    if (named) return named
    if (typeof current === 'function') {
      current = await callLazily(current as () => unknown)
      continue
    }
    if (typeof current === 'object' && current !== null && 'default' in current) {
      current = current.default
      continue
    }
    break
  }
  throw new E_INVALID_WORKFLOW([
    shownTarget(current),
    'it does not name a workflow. Pass its name, its class, a workflowRef(), or a function that returns one of these',
  ])
}

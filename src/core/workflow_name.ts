import { isName } from './name.ts'

/** Whether `value` is an object that names a workflow: `{ name, version? }`. */
export function isWorkflowRef(value: unknown): value is { name: string; version?: string } {
  if (typeof value !== 'object' || value === null) return false
  const version: unknown = Reflect.get(value, 'version')
  return isName(Reflect.get(value, 'name')) && (version === undefined || isName(version))
}

/** Whether `value` can name a workflow. A function is called only when the workflow is needed. */
export function namesWorkflow(value: unknown): boolean {
  if (typeof value === 'string') return isName(value)
  if (typeof value !== 'function') return isWorkflowRef(value)
  // A class that is not a workflow would be called later, and throw a TypeError far away from where it was given.
  return !isClass(value) || isWorkflowRef(Reflect.get(value, 'workflow'))
}

/** Whether `value` was written as a class, so that it cannot be called. */
export function isClass(value: unknown): boolean {
  return typeof value === 'function' && Function.prototype.toString.call(value).startsWith('class')
}

import { E_INVALID_WORKFLOW, E_UNKNOWN_WORKFLOW } from '../errors.ts'
import type { NamedWorkflow } from '../replay/context.ts'
import type { WorkflowTarget } from '../types/workflow.ts'
import { nameOfWorkflow, shownTarget, type TargetEnvironment } from './workflow_target.ts'

/** The workflow a body names, without looking for files: they were discovered when the worker started. */
export function nameWorkflowNow(
  target: WorkflowTarget,
  environment: TargetEnvironment
): NamedWorkflow {
  const named = nameOfWorkflow(target, environment)
  if (!named)
    throw new E_INVALID_WORKFLOW([
      shownTarget(target),
      'it does not name a workflow. Pass the name of the child, its class, or a workflowRef()',
    ])
  const { name, version } = named
  const known = environment.registry.workflow(name, version)
  if (known) return known
  if (version !== undefined) return { name, version, origin: null, tags: [] }
  throw new E_UNKNOWN_WORKFLOW([
    name,
    'Put its class into app/workflows, or use workflowRef(name, version)',
  ])
}

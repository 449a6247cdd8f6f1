import { nearestName } from '../core/nearest_name.ts'
import { E_UNKNOWN_WORKFLOW } from '../errors.ts'
import type { NamedWorkflow } from '../replay/context.ts'
import type { LazyWorkflowTarget } from '../types/workflow.ts'
import { resolveWorkflowTarget, type TargetEnvironment } from './workflow_target.ts'

/** Finds workflows by what names them; looks for files when a name is not known. */
export class WorkflowFinder {
  #environment: TargetEnvironment
  #discover: () => Promise<void>

  constructor(params: { environment: TargetEnvironment; discover: () => Promise<void> }) {
    this.#environment = params.environment
    this.#discover = params.discover
  }

  /** A workflow that is registered here, or that a ref with a version names. Throws E_UNKNOWN_WORKFLOW. */
  async named(target: LazyWorkflowTarget): Promise<NamedWorkflow> {
    const { known, name, version } = await this.#find(target)
    if (known) return known
    // A ref with a version may name what only another application serves.
    if (version !== undefined) return { name, version, origin: null, tags: [] }
    const names = this.#environment.registry.workflows().map((other) => other.name)
    const nearest = nearestName(name, names)
    throw new E_UNKNOWN_WORKFLOW([
      name,
      nearest
        ? `Did you mean "${nearest}"?`
        : 'Register it, put its class into app/workflows, or name it with workflowRef(name, version)',
    ])
  }

  /** The handler of failed or dead runs: one that nobody here knows waits for a worker that does. */
  async handler(target: LazyWorkflowTarget): Promise<NamedWorkflow> {
    const { known, name, version = '1' } = await this.#find(target)
    return known ?? { name, version, origin: null, tags: [] }
  }

  async #find(target: LazyWorkflowTarget) {
    const { registry } = this.#environment
    const { name, version } = await resolveWorkflowTarget(target, this.#environment)
    const met = registry.workflow(name, version)
    // Which version of a class is the default one is known only when all of its files are.
    const isOpen = version === undefined && met?.writtenAs === 'class'
    if (!met || isOpen) await this.#discover()
    return { name, version, known: registry.workflow(name, version) }
  }
}

import { checkName } from '../core/name.ts'
import { compareVersions } from '../core/version_order.ts'
import { E_DUPLICATE_STEP, E_WORKFLOW_ALREADY_REGISTERED } from '../errors.ts'
import type { StepDefinition, WorkflowDefinition } from './definitions.ts'

/** Whether `next` is the same definition evaluated again, as hot reload and late discovery do. */
function isSameSource(
  existing: { file: string | null; source?: unknown },
  next: { file: string | null; source?: unknown }
): boolean {
  if (next.file !== null && existing.file === next.file) return true
  return next.source !== undefined && existing.source === next.source
}

function placeOf({ file, registeredIn }: WorkflowDefinition): string {
  return file ?? registeredIn ?? 'code outside the discovered files'
}

/**
 * The version that a name alone stands for: of functions the one registered last, since somebody chose the order. Classes
 * are met in any order, so of them it is the highest one, and a function goes before them.
 */
function defaultOf(versions: readonly WorkflowDefinition[]): WorkflowDefinition | undefined {
  const byFunction = versions.findLast(({ writtenAs }) => writtenAs === 'function')
  return byFunction ?? versions.toSorted((a, b) => compareVersions(a.version, b.version)).at(-1)
}

/** The workflows and steps that this process knows. */
export class Registry {
  readonly #workflows = new Map<string, Map<string, WorkflowDefinition>>()
  readonly #steps = new Map<string, StepDefinition>()
  readonly #listeners = new Set<() => void>()
  readonly #reloadListeners = new Set<() => void>()
  #reloads = 0

  /**
   * Adds a workflow. The same source again replaces its definition; another one under a known name and version is
   * refused with E_WORKFLOW_ALREADY_REGISTERED. Throws E_INVALID_NAME.
   *
   * @param options.replace takes the place of any other source; for what was reloaded
   */
  registerWorkflow(definition: WorkflowDefinition, options: { replace?: boolean } = {}): void {
    const name = checkName('workflow name', definition.name)
    const version = checkName('workflow version', definition.version)
    const versions = this.#workflows.get(name) ?? new Map<string, WorkflowDefinition>()
    const existing = versions.get(version)
    if (existing && !options.replace && !isSameSource(existing, definition)) {
      throw new E_WORKFLOW_ALREADY_REGISTERED([
        name,
        version,
        `${placeOf(existing)}, and ${placeOf(definition)} registers it again`,
      ])
    }
    const file = definition.file ?? existing?.file ?? null
    versions.set(version, file === definition.file ? definition : { ...definition, file })
    this.#workflows.set(name, versions)
    this.#changed()
  }

  /** Undefined: unknown here. Without a version: the default one. */
  workflow(name: string, version?: string): WorkflowDefinition | undefined {
    const versions = this.#workflows.get(name)
    if (version !== undefined) return versions?.get(version)
    return versions && defaultOf([...versions.values()])
  }

  /** Every version of every workflow, in order of registration. */
  workflows(): WorkflowDefinition[] {
    return [...this.#workflows.values()].flatMap((versions) => [...versions.values()])
  }

  /**
   * Adds a step. The same file evaluated again replaces its definition; another file under a known name is refused
   * with E_DUPLICATE_STEP. Throws E_INVALID_NAME.
   *
   * @param options.replace takes the place of any other file; for one that was renamed
   */
  registerStep(definition: StepDefinition, options: { replace?: boolean } = {}): void {
    const name = checkName('step name', definition.name)
    const existing = this.#steps.get(name)
    if (existing && !options.replace && !isSameSource(existing, definition)) {
      const shown = (file: string | null) => file ?? 'an unknown file'
      throw new E_DUPLICATE_STEP([name, shown(existing.file), shown(definition.file)])
    }
    this.#steps.set(name, definition)
    this.#changed()
  }

  /** Undefined: unknown here. */
  step(name: string): StepDefinition | undefined {
    return this.#steps.get(name)
  }

  steps(): StepDefinition[] {
    return [...this.#steps.values()]
  }

  /** Calls `listener` after each registration, until the returned function is called. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** How often code was replaced in this process. */
  get reloads(): number {
    return this.#reloads
  }

  /** Says that files of workflows or steps were evaluated again: what did not fit the code may fit now. */
  reloaded(): void {
    this.#reloads++
    for (const listener of this.#reloadListeners) listener()
  }

  /** Calls `listener` whenever code was replaced, until the returned function is called. */
  onReload(listener: () => void): () => void {
    this.#reloadListeners.add(listener)
    return () => this.#reloadListeners.delete(listener)
  }

  #changed(): void {
    for (const listener of this.#listeners) listener()
  }
}

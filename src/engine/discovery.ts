import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { E_DISCOVERY_FAILED, E_INVALID_WORKFLOW, E_WORKFLOW_ALREADY_REGISTERED } from '../errors.ts'
import type { WorkflowClass } from '../types/workflow.ts'
import type { Registry } from './registry.ts'
import {
  isDiscoverable,
  isWorkflowClass,
  workflowDefinitions,
  workflowOptions,
  type ClassEnvironment,
} from './workflow_class.ts'
import { explainCircularImport } from './workflow_target.ts'

const SOURCE_FILE = /(?<!\.d)\.m?[jt]s$/

/** Source files below `directory`, sorted; none when it does not exist. */
async function sourceFiles(directory: string): Promise<string[]> {
  try {
    const entries = await readdir(directory, { recursive: true, withFileTypes: true })
    return entries
      .filter((entry) => entry.isFile() && SOURCE_FILE.test(entry.name))
      .map((entry) => join(entry.parentPath, entry.name))
      .sort()
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return []
    throw error
  }
}

/** The module of a file as it is now: under hot reload, a changed file is evaluated again. */
async function importFile(file: string): Promise<object> {
  try {
    return await import(pathToFileURL(file).href)
  } catch (error) {
    const explained = explainCircularImport(error, file)
    if (explained !== error) throw explained
    const problem = error instanceof Error ? error.message : String(error)
    throw new E_DISCOVERY_FAILED([file, problem], { cause: error })
  }
}

/** A number for each evaluation of a module. */
const evaluations = new WeakMap<object, number>()
let evaluated = 0

/** Another text whenever the file is evaluated again: hot reload does that a while after it, or what it imports, was written to. */
async function evaluationOf(file: string): Promise<string> {
  try {
    const module = await importFile(file)
    const number = evaluations.get(module) ?? evaluated++
    evaluations.set(module, number)
    return String(number)
  } catch (error) {
    return String(error)
  }
}

/** Another text whenever one of the files came, went, was written to or was evaluated again. */
async function traceOf(files: readonly string[]): Promise<string> {
  const lines: string[] = []
  for (const file of files) {
    const { mtimeMs } = await stat(file)
    lines.push(`${file} ${mtimeMs} ${await evaluationOf(file)}`)
  }
  return lines.join('\n')
}

/** The workflow classes that a module exports, each once. */
function workflowsOf(module: object): WorkflowClass[] {
  return [...new Set(Object.values(module).filter(isDiscoverable))]
}

/** Whether it is meant as a workflow, and no subclass of BaseWorkflow. */
function isStray(value: unknown): value is WorkflowClass {
  return isWorkflowClass(value) && Object.hasOwn(value, 'workflow') && !isDiscoverable(value)
}

/** Why a file of workflows is not the one that was meant; null = nothing is to be said of it. */
async function oversightIn(file: string, module: object): Promise<string | null> {
  const exported = Object.values(module)
  const stray = exported.find(isStray)
  if (stray !== undefined)
    return (
      `The class ${stray.name} of ${file} does not extend BaseWorkflow, so it is not found. ` +
      'Write: class ... extends BaseWorkflow'
    )
  // Files of types alone, and those that register functions, export nothing either.
  if (exported.length > 0 || !/\bclass\b/.test(await readFile(file, 'utf8'))) return null
  return `${file} exports nothing, so no workflow is found in it. Export its class: export default class ...`
}

function keyOf(target: WorkflowClass): string {
  const { name, version = '1' } = workflowOptions(target)
  return `"${name}" version "${version}"`
}

/** What discovery needs of the application. */
export interface DiscoveryParams extends ClassEnvironment {
  registry: Registry
  /** Absolute. Every exported subclass of BaseWorkflow below it is registered. */
  workflowsPath: string
  /** Absolute. Importing its files makes the steps in them register themselves. */
  stepsPath: string
}

/** Finds the workflows and steps of an application by importing the files of two directories. */
export class Discovery {
  readonly #params: DiscoveryParams
  #found: Promise<void> | undefined
  #workflowFiles: string[] = []
  #stepFiles: string[] = []
  /** The trace of all files at the last look, in development. */
  #trace = ''
  /** What each file was when it was last imported, in development. */
  readonly #modules = new Map<string, object>()
  readonly #oversights = new Set<string>()

  constructor(params: DiscoveryParams) {
    this.#params = params
  }

  /**
   * Imports and registers everything, once; in development each call looks again, since files come and change.
   * Calls at the same time share one look. Rejects with E_DISCOVERY_FAILED, which names the file, with
   * E_CIRCULAR_WORKFLOW_IMPORT, E_INVALID_WORKFLOW, E_WORKFLOW_ALREADY_REGISTERED or E_DUPLICATE_STEP; the next call
   * then tries again.
   */
  discover(): Promise<void> {
    this.#found ??= this.#look().then(
      () => {
        if (this.#params.inDevelopment) this.#found = undefined
      },
      (error: unknown) => {
        this.#found = undefined
        throw error
      }
    )
    return this.#found
  }

  /**
   * For development: looks again if a file came, went, was written to or was replaced by hot reload since the last look,
   * whichever way that look ended. Rejects as `discover` does.
   */
  async discoverChanges(): Promise<void> {
    const { workflowsPath, stepsPath } = this.#params
    const files = [...(await sourceFiles(workflowsPath)), ...(await sourceFiles(stepsPath))]
    if ((await traceOf(files)) !== this.#trace) await this.discover()
  }

  async #look(): Promise<void> {
    const { workflowsPath, stepsPath, inDevelopment } = this.#params
    this.#workflowFiles = await sourceFiles(workflowsPath)
    this.#stepFiles = await sourceFiles(stepsPath)
    if (inDevelopment) this.#trace = await traceOf([...this.#workflowFiles, ...this.#stepFiles])
    for (const file of this.#workflowFiles) {
      const module = await importFile(file)
      this.#register(file, workflowsOf(module))
      this.#warnOnce(await oversightIn(file, module))
    }
    for (const file of this.#stepFiles) await importFile(file)
    await this.#importAgain()
  }

  #warnOnce(oversight: string | null): void {
    if (oversight === null || this.#oversights.has(oversight)) return
    this.#oversights.add(oversight)
    this.#params.logger.warn(oversight)
  }

  /**
   * Hot reload replaces a file in the running process only if it was last imported dynamically, and restarts the
   * process otherwise. So once the files have imported each other, each is imported from here again, which evaluates
   * nothing. Where that gives another module than before, code was replaced.
   */
  async #importAgain(): Promise<void> {
    if (!this.#params.inDevelopment) return
    let isReplaced = false
    for (const file of [...this.#workflowFiles, ...this.#stepFiles]) {
      const module = await importFile(file)
      isReplaced ||= this.#modules.get(file) !== module
      this.#modules.set(file, module)
    }
    if (isReplaced) this.#params.registry.reloaded()
  }

  #register(file: string, classes: WorkflowClass[]): void {
    const { registry } = this.#params
    const seen = new Set<string>()
    for (const target of classes) {
      const { name, version = '1' } = workflowOptions(target)
      const key = keyOf(target)
      if (seen.has(key)) {
        throw new E_WORKFLOW_ALREADY_REGISTERED([name, version, `another class of ${file}`])
      }
      seen.add(key)
      const known = registry.workflow(name, version)
      if (known?.source === target && known.file !== null) continue
      const replace = known !== undefined && this.#isGone(known.file)
      for (const definition of this.#definitionsOf(target, file))
        registry.registerWorkflow(definition, { replace })
    }
  }

  /** Whether it is a file of an earlier look, which has been renamed or removed since: in development only. */
  #isGone(file: string | null): boolean {
    return this.#params.inDevelopment && file !== null && !this.#workflowFiles.includes(file)
  }

  #definitionsOf(target: WorkflowClass, file: string) {
    const params = { ...this.#params, file }
    if (!this.#params.inDevelopment) return workflowDefinitions(target, params)
    return workflowDefinitions(target, {
      ...params,
      latest: () => this.#latest(file, target),
    })
  }

  /** The class under the same name and version in its file as it is now; steps that changed register again. */
  async #latest(file: string, target: WorkflowClass): Promise<WorkflowClass> {
    const module = await importFile(file)
    let isChanged = module !== this.#modules.get(file)
    for (const step of this.#stepFiles) {
      isChanged = (await importFile(step)) !== this.#modules.get(step) || isChanged
    }
    if (isChanged) await this.#importAgain()
    const key = keyOf(target)
    const found = workflowsOf(module).find((other) => keyOf(other) === key)
    if (!found) {
      const { name, version = '1' } = workflowOptions(target)
      throw new E_INVALID_WORKFLOW([
        name,
        `${file} does not export its version "${version}" any more. Start the process again`,
      ])
    }
    return found
  }
}

import { E_INVALID_WORKFLOW, E_UNRESOLVABLE_WORKFLOW } from '../errors.ts'
import { type KeysOf, unknownKey } from '../core/known_options.ts'
import type { RunLogger } from '../types/step.ts'
import type { WorkflowClass, WorkflowOptions } from '../types/workflow.ts'
import type { WorkflowBody, WorkflowDefinition } from './definitions.ts'
import { failureOptions } from './failure_options.ts'
import { inlineHandlers } from './inline_handlers.ts'
import { reportWrites } from './instance_writes.ts'
import { checkSchema } from './schema.ts'
import type { InstanceMaker } from './step_declarations.ts'

const KEYS: KeysOf<WorkflowOptions> = {
  name: true,
  version: true,
  tags: true,
  executionTimeout: true,
  deadLetterWorkflow: true,
  onError: true,
  input: true,
  searchAttributes: true,
}

/** What turning classes into definitions needs of the application. */
export interface ClassEnvironment {
  maker: InstanceMaker
  logger: RunLogger
  /** The application's label, from the configuration. */
  origin: string | null
  /** Reports what only a developer at the keyboard should see, and follows reloaded classes. */
  inDevelopment: boolean
}

/** Marks BaseWorkflow, and so its subclasses. By a symbol, since the package may be loaded twice. */
export const WORKFLOW: unique symbol = Symbol.for('@adonis-agora/durable:workflow')

/** Whether `value` is a subclass of BaseWorkflow with a body; the abstract ones between them have none. */
export function isDiscoverable(value: unknown): value is WorkflowClass {
  return isWorkflowClass(value) && Reflect.get(value, WORKFLOW) === true
}

/** Whether `value` is a class whose instances have a `run`: it is meant as a workflow. `workflowOptions` checks the rest. */
export function isWorkflowClass(value: unknown): value is WorkflowClass {
  if (typeof value !== 'function') return false
  const prototype: unknown = value.prototype
  return (
    typeof prototype === 'object' &&
    prototype !== null &&
    typeof Reflect.get(prototype, 'run') === 'function'
  )
}

/**
 * The checked `static workflow` of a class. TypeScript checks none of it where the static is not annotated, so
 * unknown keys are refused with the nearest known one. Throws E_INVALID_WORKFLOW.
 */
export function workflowOptions(target: WorkflowClass): WorkflowOptions {
  const shown = target.name || 'an anonymous class'
  if (Reflect.get(target, WORKFLOW) !== true) {
    throw new E_INVALID_WORKFLOW([
      shown,
      'the class does not extend BaseWorkflow, and workers look for no other. Write: class ... extends BaseWorkflow',
    ])
  }
  if (!isWorkflowClass(target)) {
    throw new E_INVALID_WORKFLOW([
      shown,
      'the class has no method "run". Add: async run(ctx, input) { ... }',
    ])
  }
  // A subclass is another workflow: what it inherits is the name of its parent.
  const options: unknown = Object.hasOwn(target, 'workflow') ? target.workflow : undefined
  if (typeof options !== 'object' || options === null) {
    throw new E_INVALID_WORKFLOW([
      shown,
      `the class has no static "workflow" of its own. Add: static workflow = { name: '...' }`,
    ])
  }
  const unknown = unknownKey(options, Object.keys(KEYS))
  if (unknown) {
    const { key, hint } = unknown
    throw new E_INVALID_WORKFLOW([shown, `"${key}" is not a key of "static workflow". ${hint}`])
  }
  const { name, version, tags } = options as Partial<WorkflowOptions>
  if (typeof name !== 'string' || name === '') {
    throw new E_INVALID_WORKFLOW([
      shown,
      `"static workflow" has no "name". Add one, such as name: 'shop.order'`,
    ])
  }
  if (version !== undefined && typeof version !== 'string') {
    throw new E_INVALID_WORKFLOW([shown, `the "version" is not a string. Pass one, such as '1'`])
  }
  if (
    tags !== undefined &&
    !(Array.isArray(tags) && tags.every((tag) => typeof tag === 'string'))
  ) {
    throw new E_INVALID_WORKFLOW([
      shown,
      'the "tags" are not a list of strings. Pass one, or leave them out',
    ])
  }
  return { ...(options as WorkflowOptions), name }
}

async function makeInstance(target: WorkflowClass, maker: InstanceMaker): Promise<object> {
  try {
    return await maker.make(target)
  } catch (cause) {
    const problem = cause instanceof Error ? cause.message : String(cause)
    throw new E_UNRESOLVABLE_WORKFLOW([target.workflow?.name ?? target.name, problem], { cause })
  }
}

/** What makes definitions of a class. */
export interface ClassParams extends ClassEnvironment {
  file?: string | null
  /** Resolves to the class as it is now, in development; default: always the given one. */
  latest?: () => Promise<WorkflowClass>
}

/**
 * The definition of a workflow class, and one for each handler that it declares beside its body. The container makes
 * one instance for each run held in memory, of a handler too.
 *
 * @throws E_INVALID_WORKFLOW, E_INVALID_SCHEMA
 */
export function workflowDefinitions(
  target: WorkflowClass,
  params: ClassParams
): [WorkflowDefinition, ...WorkflowDefinition[]] {
  const options = workflowOptions(target)
  const { name, version = '1', tags = [] } = options
  const handlers = inlineHandlers(target, options)
  const routes = handlers.flatMap(({ name: handler, takes }) =>
    'code' in takes ? [{ code: takes.code, workflow: { name: handler, version } }] : []
  )
  const dead = handlers.find(({ takes }) => 'dead' in takes)
  const deadLetterWorkflow = dead ? { name: dead.name, version } : options.deadLetterWorkflow
  const onError = [...(options.onError ?? []), ...routes]
  const writtenAs = 'class' as const
  const shared = {
    version,
    writtenAs,
    origin: params.origin,
    input: null,
    file: params.file ?? null,
  }
  const none = { tags: [], ...failureOptions(name, {}) }
  return [
    {
      ...{ ...shared, name, tags, source: target },
      input: checkSchema(options.input, `"input" of workflow "${name}"`),
      searchAttributes: checkSchema(
        options.searchAttributes,
        `"searchAttributes" of workflow "${name}"`
      ),
      ...failureOptions(name, { ...options, deadLetterWorkflow, onError }),
      createBody: bodyMaker(target, { ...params, name, key: 'run' }),
    },
    ...handlers.map(({ name: handler, key }) => ({
      ...{ ...shared, ...none, name: handler, source: `${key} of ${name}` },
      createBody: bodyMaker(target, { ...params, name: handler, key }),
    })),
  ]
}

/** The definition of a class alone. */
export function workflowDefinition(target: WorkflowClass, params: ClassParams): WorkflowDefinition {
  return workflowDefinitions(target, params)[0]
}

function bodyMaker(
  target: WorkflowClass,
  params: ClassParams & { name: string; key: string }
): () => Promise<WorkflowBody> {
  const { maker, logger, inDevelopment, name, key } = params
  return async () => {
    const current = params.latest ? await params.latest() : target
    const instance = await makeInstance(current, maker)
    const method: unknown = Reflect.get(instance, key)
    if (typeof method !== 'function') {
      throw new E_UNRESOLVABLE_WORKFLOW([name, `what the container made has no "${key}" method`])
    }
    if (inDevelopment) {
      reportWrites(instance, (written) => {
        logger.warn(
          `Workflow "${name}" wrote to this.${written} during a run. Another process replays the body on a new instance, ` +
            'which does not have the value: keep it in a variable of the body, or return it from a step'
        )
      })
    }
    return (ctx, input) => Reflect.apply(method, instance, [ctx, input])
  }
}

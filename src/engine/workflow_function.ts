import { checkOptions, type KeysOf } from '../core/known_options.ts'
import type { WorkflowCtx } from '../types/context.ts'
import type { RegisterOptions } from '../types/workflow.ts'
import type { WorkflowDefinition } from './definitions.ts'
import { failureOptions } from './failure_options.ts'
import { checkSchema } from './schema.ts'

interface WorkflowFunction<I> {
  name: string
  version: string
  fn: (ctx: WorkflowCtx, input: I) => unknown
  options: RegisterOptions<I>
  /** The application's label, from the configuration. */
  origin: string | null
  /** The file of the call that registers it, where that is known. */
  registeredIn: string | null
}

const OPTIONS: KeysOf<RegisterOptions<unknown>> = {
  executionTimeout: true,
  deadLetterWorkflow: true,
  onError: true,
  tags: true,
  input: true,
  searchAttributes: true,
}

/** What a function is registered as. Throws E_INVALID_SCHEMA, E_UNKNOWN_OPTION and what is wrong with the options of failure. */
export function functionDefinition<I>(params: WorkflowFunction<I>): WorkflowDefinition {
  const { name, version, fn, options, origin, registeredIn } = params
  checkOptions('engine.register()', options, OPTIONS)
  const schemaOf = (key: 'input' | 'searchAttributes') =>
    checkSchema(options[key], `"${key}" of workflow "${name}"`)
  return {
    name,
    version,
    writtenAs: 'function',
    origin,
    tags: options.tags ?? [],
    ...failureOptions(name, options),
    input: schemaOf('input'),
    searchAttributes: schemaOf('searchAttributes'),
    file: null,
    registeredIn,
    source: fn,
    createBody: async () => fn as (ctx: WorkflowCtx, input: unknown) => unknown,
  }
}

import type { StandardSchemaV1 } from '@standard-schema/spec'
import type { WorkflowCtx } from '../types/context.ts'
import type { StepContext, StepOptions } from '../types/step.ts'
import type { FailureRoute, LazyWorkflowTarget } from '../types/workflow.ts'

export type WorkflowBody = (ctx: WorkflowCtx, input: unknown) => unknown

/** A registered workflow. */
export interface WorkflowDefinition {
  name: string
  version: string
  /** Decides which version is the default one; see the registry. */
  writtenAs: 'class' | 'function'
  origin: string | null
  /** Tags of every run. */
  tags: readonly string[]
  /** Who takes care of which failures. */
  onError: readonly FailureRoute[]
  /** Who takes care of dead runs; null = the default of the configuration. */
  deadLetterWorkflow: LazyWorkflowTarget | null
  /** Runs are cancelled after this time, in ms; null = never. */
  timeoutMs: number | null
  /** Parses a stored input before the body sees it. */
  input: StandardSchemaV1 | null
  /** Parses the search attributes that a body sets. */
  searchAttributes?: StandardSchemaV1 | null
  /** File it was discovered in, for messages. */
  file: string | null
  /** File of the call that registered a function, for messages. */
  registeredIn?: string | null
  /** The class or function it was made of: the same again replaces the definition. */
  source?: unknown
  /** Makes the body of one run held in memory; for a class, from an instance that the container makes. */
  createBody(): Promise<WorkflowBody>
}

/** A registered step handler. */
export interface StepDefinition {
  name: string
  options: StepOptions
  /** File that declares it, for messages; the same again replaces the definition. */
  file: string | null
  run(input: unknown, step: StepContext): unknown
}

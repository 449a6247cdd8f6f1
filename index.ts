export { configure } from './configure.ts'
export { stubsRoot } from './stubs/main.ts'
export { defineConfig, stores } from './src/define_config.ts'
export { BaseWorkflow, workflowRef } from './src/base_workflow.ts'
export { OnError } from './src/on_error.ts'
export { defineStep, Step } from './src/step.ts'
export { WorkflowEngine } from './src/engine/engine.ts'
export {
  ChildError,
  FatalError,
  SchemaValidationError,
  SignalTimeoutError,
  StepError,
} from './src/errors.ts'
export { createDurableTables, dropDurableTables } from './src/stores/lucid/schema.ts'
export * as errors from './src/errors.ts'
export type { AllOptions, ChildHandle, WorkflowCtx } from './src/types/context.ts'
export type {
  RunLogger,
  StepArgs,
  StepCall,
  StepContext,
  StepHandler,
  StepInput,
  StepOptions,
  StepOutput,
  StepRef,
} from './src/types/step.ts'
export type {
  DeadLetter,
  ErrorWithCode,
  FailureRoute,
  InputOf,
  LazyWorkflowTarget,
  OnErrorInput,
  OutputOf,
  RegisterOptions,
  RunHandle,
  StartArgs,
  StartOptions,
  WorkflowClass,
  WorkflowModule,
  WorkflowOptions,
  WorkflowRef,
  WorkflowTarget,
} from './src/types/workflow.ts'
export type { DurableConfig } from './src/define_config.ts'
export type { RunEvent, RunEventName, RunEvents } from './src/engine/events.ts'
export type { RunPage, WorkflowRun } from './src/engine/workflow_run.ts'
export type { RunQuery, StrandedReason, StrandedRun, WorkerRow } from './src/contracts/store.ts'
export type { OpenOperation, RecordedOperation, RunHistory } from './src/engine/run_history.ts'
export type { OperationKind, RecordStatus } from './src/core/history.ts'
export type { Instant } from './src/core/instant.ts'
export type {
  HandledRun,
  ParentLink,
  RunPhase,
  RunPriority,
  RunStatus,
  RunSummary,
} from './src/core/run.ts'
export type { SearchAttributes, StoredAttribute } from './src/core/search_attributes.ts'
export type { SerializedError } from './src/core/serialized_error.ts'
export type { AbortCode, MatchedFailure, RecordedCode } from './src/errors.ts'

export type { AllOptions, ChildHandle, WorkflowCtx } from './context.ts'
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
} from './step.ts'
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
} from './workflow.ts'
export type { DurableConfig } from '../define_config.ts'
export type { RunEvent, RunEventName, RunEvents } from '../engine/events.ts'
export type { RunPage, WorkflowRun } from '../engine/workflow_run.ts'
export type { RunQuery, StrandedReason, StrandedRun, WorkerRow } from '../contracts/store.ts'
export type { OpenOperation, RecordedOperation, RunHistory } from '../engine/run_history.ts'
export type { OperationKind, RecordStatus } from '../core/history.ts'
export type { Instant } from '../core/instant.ts'
export type {
  HandledRun,
  ParentLink,
  RunPhase,
  RunPriority,
  RunStatus,
  RunSummary,
} from '../core/run.ts'
export type { SearchAttributes, StoredAttribute } from '../core/search_attributes.ts'
export type { SerializedError } from '../core/serialized_error.ts'
export type { AbortCode, MatchedFailure, RecordedCode } from '../errors.ts'

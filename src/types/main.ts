export type { AllOptions, ChildHandle, WorkflowCtx } from './context.ts'
export type {
  RunLogger,
  StepCall,
  StepContext,
  StepHandler,
  StepInput,
  StepOptions,
  StepOutput,
  StepRef,
} from './step.ts'
export type {
  InputOf,
  LazyWorkflowTarget,
  OutputOf,
  RunHandle,
  StartOptions,
  WorkflowClass,
  WorkflowOptions,
  WorkflowRef,
  WorkflowTarget,
} from './workflow.ts'
export type { DurableConfig } from '../define_config.ts'
export type { RunEvent, RunEvents } from '../engine/events.ts'
export type { WorkflowRun } from '../engine/workflow_run.ts'
export type {
  RunPage,
  RunQuery,
  StrandedReason,
  StrandedRun,
  WorkerRow,
} from '../contracts/store.ts'
export type { HistoryRecord, OperationKind, RecordStatus, Wait } from '../core/history.ts'
export type { RunRow, RunStatus } from '../core/run.ts'

import type { Store, TransactionalStore } from '../contracts/store.ts'
import type { Transport } from '../contracts/transport.ts'
import type { RunRow } from '../core/run.ts'
import type { ResolvedOptions } from '../options.ts'
import type { ContextParams } from '../replay/context.ts'
import type { LazyWorkflowTarget } from '../types/workflow.ts'
import { Cancellation } from './cancellation.ts'
import { CommitQueue } from './commit_queue.ts'
import { DeadLetters } from './dead_letters.ts'
import { Dispatcher } from './dispatcher.ts'
import { RunEventEmitter } from './events.ts'
import { FailureRouting } from './failure_routing.ts'
import { nameWorkflowNow } from './naming.ts'
import { RunNews } from './news.ts'
import type { Registry } from './registry.ts'
import type { EngineLogger } from './run_logger.ts'
import type { InstanceMaker } from './step_declarations.ts'
import { stampOf, stepNameOf } from './step_stamp.ts'
import { WorkflowFinder } from './workflow_finder.ts'

/** A worker of this process that may execute what is started here. */
export interface Starter {
  /** A slot for a new run; null when none is free, or older runs wait. */
  offer(claimKey: string): Slot | null
  /** Whether a run is under way here, whose end the news of this process will tell. */
  executes(runId: string): boolean
}

/** A slot kept for a run that is about to be stored. It ends with exactly one of `use` and `giveBack`. */
export interface Slot {
  /** The instance to lease the run to. */
  readonly owner: string
  /** Executes the run that was stored under this lease. `input` is encoded. */
  use(row: RunRow, input: string): void
  giveBack(): void
}

/** A store that may take part in the application's transactions. */
export type EngineStore = Store & Partial<TransactionalStore<unknown>>

export interface EngineDependencies {
  registry: Registry
  /** Makes the store; called once, before the first use. */
  openStore: () => Promise<EngineStore>
  /** Looks for workflow and step files; called when a worker starts and when a name is unknown. */
  discover: () => Promise<void>
  /** Makes the instances of workflows and steps: the container. */
  maker: InstanceMaker
  options: ResolvedOptions
  /** Handler of dead runs whose workflow names none. */
  deadLetterWorkflow?: LazyWorkflowTarget | undefined
  logger: EngineLogger
  inDevelopment: boolean
  /** Carries steps to other processes. Default: none, and every step is executed beside its body. */
  transport?: Transport | undefined
}

/** What the parts of one engine share. */
export interface EngineContext {
  /** Opens the store at the first call. */
  store(): Promise<EngineStore>
  discover(): Promise<void>
  commits: CommitQueue
  news: RunNews
  events: RunEventEmitter
  registry: Registry
  options: ResolvedOptions
  log: EngineLogger
  naming: Pick<ContextParams, 'stepName' | 'stepStamp' | 'workflow'>
  finder: WorkflowFinder
  routing: FailureRouting
  cancellation: Cancellation
  deadLetters: DeadLetters
  /** Null: every step is executed beside its body. */
  dispatcher: Dispatcher | null
  inDevelopment: boolean
  /** Runs that this process executes and whose bodies have stalled. */
  stalled: Set<string>
  /** The worker to execute what is started here, while there is one. */
  starter: Starter | null
}

/** Makes the parts of an engine. It opens nothing: `store` does, at its first call. */
export function contextOf(
  deps: EngineDependencies,
  store: () => Promise<EngineStore>
): EngineContext {
  const { registry, maker, options, discover, logger: log, inDevelopment, transport } = deps
  const environment = { registry, maker, logger: log, origin: options.origin, inDevelopment }
  const news = new RunNews()
  const commits = new CommitQueue({ store, news })
  const finder = new WorkflowFinder({ environment, discover })
  const events = new RunEventEmitter((err) =>
    log.error({ err }, 'A listener of run events has failed')
  )
  const routing = new FailureRouting({
    registry,
    events,
    resolve: (target) => finder.handler(target),
    deadLetterWorkflow: deps.deadLetterWorkflow ?? null,
  })
  const shared = { store, commits, events, registry, options, routing, inDevelopment, log }
  return {
    ...shared,
    discover,
    news,
    finder,
    cancellation: new Cancellation(shared),
    deadLetters: new DeadLetters(shared),
    dispatcher: transport ? new Dispatcher({ transport, ...shared }) : null,
    naming: {
      stepName: (step) => stepNameOf(step as string),
      stepStamp: (fn) => (typeof fn === 'function' ? (stampOf(fn) ?? null) : null),
      workflow: (target) => nameWorkflowNow(target, environment),
    },
    stalled: new Set(),
    starter: null,
  }
}

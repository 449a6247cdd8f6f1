import type { Store } from '../contracts/store.ts'
import type { RunRow } from '../core/run.ts'
import type { ResolvedOptions } from '../options.ts'
import type { ContextParams } from '../replay/context.ts'
import type { Cancellation } from './cancellation.ts'
import type { CommitQueue } from './commit_queue.ts'
import type { DeadLetters } from './dead_letters.ts'
import type { Dispatcher } from './dispatcher.ts'
import type { RunEventEmitter } from './events.ts'
import type { FailureRouting } from './failure_routing.ts'
import type { RunNews } from './news.ts'
import type { Registry } from './registry.ts'
import type { EngineLogger } from './run_logger.ts'

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

/** What the parts of one engine share. */
export interface EngineContext {
  /** Opens the store at the first call. */
  store(): Promise<Store>
  discover(): Promise<void>
  commits: CommitQueue
  news: RunNews
  events: RunEventEmitter
  registry: Registry
  options: ResolvedOptions
  log: EngineLogger
  naming: Pick<ContextParams, 'stepName' | 'stepStamp' | 'workflow'>
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

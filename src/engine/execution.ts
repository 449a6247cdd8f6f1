import type { LoadedRun, Store } from '../contracts/store.ts'
import type { RunRow } from '../core/run.ts'
import type { AbortError } from '../errors.ts'
import type { ResolvedOptions } from '../options.ts'
import type { ContextParams } from '../replay/context.ts'
import type { CommitQueue } from './commit_queue.ts'
import type { Dispatcher } from './dispatcher.ts'
import type { RunEventEmitter } from './events.ts'
import type { FailureRouting } from './failure_routing.ts'
import type { Lease } from './lease.ts'
import type { RunNews } from './news.ts'
import type { Registry } from './registry.ts'
import type { EngineLogger } from './run_logger.ts'
import type { TurnEnding } from './run_writer.ts'

/** Executes a run of one phase under a lease. */
export interface Execution {
  readonly row: RunRow
  /** Goes on until the run leaves this process, or this phase. */
  run(row: RunRow, loaded: LoadedRun): Promise<TurnEnding>
  /** Lets code at work finish and starts no further one, then hands the run back. */
  drain(): void
  /** Aborts code at work and starts no further one. Once that has returned, hands the run back. */
  abort(reason: AbortError): void
  /** Hands the run back now; steps in flight are aborted and run again elsewhere. */
  release(reason: AbortError): void
  /** The lease is gone, or the memory is wanted: nothing happens any more. */
  discard(reason: AbortError): void
  /**
   * Resolves when the code of the run that is at work now has returned, but for what an earlier call waits for. A run
   * that is kept in memory may go on meanwhile.
   */
  quiet(): Promise<void>
  /** What is worth keeping in memory of a run that has been suspended; null = nothing. */
  readonly resident: Resident | null
}

/** The execution of a suspended run, which goes on where it stopped when this process claims the run again. */
export interface Resident extends Execution {
  /** Whether a claimed row continues what this keeps in memory. */
  continues(row: RunRow): boolean
  /** Characters of recorded payloads that this keeps in memory. */
  readonly historyCharacters: number
  /** Number of the newest inbox entry it has loaded. */
  readonly inboxLoaded: number
}

/** What executing a run needs of its process. */
export interface ExecutionParams {
  store: Store
  commits: CommitQueue
  news: RunNews
  events: RunEventEmitter
  registry: Registry
  routing: FailureRouting
  /** Null: every step is executed beside its body. */
  dispatcher: Dispatcher | null
  lease: Lease
  log: EngineLogger
  options: Pick<ResolvedOptions, 'maxPayloadBytes' | 'stallMs' | 'idlePollMs' | 'nonDeterminism'>
  inDevelopment: boolean
  /** As in `EngineContext`. */
  stalled: Set<string>
  naming: Pick<ContextParams, 'stepName' | 'stepStamp' | 'workflow'>
}

import type { DispatchKey, StepResult } from '../core/dispatch.ts'

/** A step for a worker to execute. Times are durations: no clock reading crosses the wire. */
export interface StepMessage extends DispatchKey {
  /** The handler's idempotency key: `<runId>:<seq>`, the same for every attempt, and `~<n>` behind it once it was undone. */
  stepId: string
  /** Unique; its answer names it. */
  dispatchId: string
  /** Of the step. */
  name: string
  /** Encoded. */
  input: string
  /** After which the worker is to abort the attempt and to answer with `step_timeout`, in ms; null = never. */
  timeoutMs: number | null
  /** After so long without a heartbeat the attempt is sent again, in ms; null = `timeoutMs` decides, and heartbeats do not. */
  silenceMs: number | null
}

/**
 * What a transport calls with what comes from workers. Both reject while the store is away, or refuses what they write,
 * and are then called again.
 */
export interface TransportListener {
  /**
   * Resolves once the result is stored, or nobody can want it any more: only then is it acknowledged. The same one may be
   * given more than once.
   */
  result(result: StepResult): Promise<ResultReceipt>
  /** The attempt is being executed. Resolves to false when nobody waits for it any more. */
  heartbeat(attempt: DispatchKey): Promise<boolean>
}

/**
 * `stored`: the run's next turn takes it, if it still waits for the attempt. `unwanted`: the run has ended, or there is
 * none.
 */
export type ResultReceipt = 'stored' | 'unwanted'

/** Carries steps to the workers that execute them, and brings back what became of them. */
export interface Transport {
  /**
   * Begins to listen, before anything is sent; called again only if it has rejected. It does so only for what no waiting
   * would change, such as a wrong configuration: a broker that is away is looked for by the transport itself.
   */
  open(listener: TransportListener): Promise<void>
  /** Resolves when each message will reach a worker at least once; rejects when one may not, and it is sent again later. */
  send(messages: readonly StepMessage[]): Promise<void>
  /** Resolves when it is at rest: what was being sent is sent or given up, and the listener is called no more. Idempotent. */
  close(): Promise<void>
}

import { setTimeout as delay } from 'node:timers/promises'
import { isTerminal, type RunStatus } from '../../src/core/run.ts'
import type { WorkflowEngine } from '../../src/engine/engine.ts'
import type { GivenOptions } from '../../src/options.ts'
import type { StepContext } from '../../src/types/step.ts'
import type { Preparation } from './crash_database.ts'

export type Effect = (step: StepContext) => void

/** Something that is cut at each of its writes, and has to come to the same end. */
export interface Scenario {
  options?: GivenOptions
  /** What has happened before; default nothing. */
  prepare?: Preparation
  /** Registers its workflows; their steps call `effect` first. */
  register(engine: WorkflowEngine, effect: Effect): void
  /** Starts its runs and resolves when all have ended. A process that comes after a killed one calls it again. */
  drive(engine: WorkflowEngine): Promise<void>
  /** What its runs come to, by id: the output, or the code of the failure. */
  outcomes: Record<string, { output: unknown } | { failed: string }>
  /** Runs that are requeued on the way, and so begin to count anew. */
  requeued?: readonly string[]
  /** How many steps of one run its body lets run at once; default 1. */
  parallel?: number
}

/** Beyond any number of attempts: what a step counts from in the second life of its run. */
export const LIFE = 100
export const LONG_MS = 3_600_000
export const LONG_BACKOFF_MS = 60_000

/** Resolves when the run has the status, or has ended. */
export async function reached(
  engine: WorkflowEngine,
  runId: string,
  status: RunStatus
): Promise<RunStatus> {
  for (;;) {
    const run = await engine.getRun(runId)
    if (run && (run.status === status || isTerminal(run.status))) return run.status
    await delay(1)
  }
}

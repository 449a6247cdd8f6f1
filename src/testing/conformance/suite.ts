import assert from 'node:assert/strict'
import type { Store } from '../../contracts/store.ts'
import { Scenario } from './scenario.ts'

/** Damage done behind the store's back, so that promise P4 can be seen to notice it. */
export interface StoreCorruption {
  /** Deletes the row of an open wait. */
  dropWait(runId: string, seq: number): Promise<void>
  /** Deletes a run with all that belongs to it, its parent untold. */
  dropRun(runId: string): Promise<void>
  /** Deletes the run's inbox entries; its `inboxSeq` stays. */
  dropInbox(runId: string): Promise<void>
  /** Sets the due time to null. */
  forgetDue(runId: string): Promise<void>
  /** Sets the owner to an instance that no worker row has. */
  forgetOwner(runId: string): Promise<void>
  /** Sets the row's format. */
  setFormat(runId: string, format: number): Promise<void>
}

/** A store on an empty database of its own. */
export interface StoreUnderTest {
  /** Opened. */
  store: Store
  /** Opens another connection to the same database; `close` closes it too. */
  another(): Promise<Store>
  corrupt: StoreCorruption
  close(): Promise<void>
}

/** What the suite asks of a test runner, and of the store. */
export interface ConformanceOptions {
  group(title: string, define: () => void): unknown
  test(title: string, run: () => Promise<void>): unknown
  create(): Promise<StoreUnderTest>
}

/** Declares one test on a store of its own. */
export type Check = (
  title: string,
  run: (scenario: Scenario) => Promise<void>,
  options?: {
    /** The test strands runs on purpose; otherwise none may be stranded at its end. Default false. */
    strands?: boolean
  }
) => void

/** Binds the tests of a group to a runner and to a fresh store for each. */
export function checkWith({ test, create }: ConformanceOptions): Check {
  return (title, run, { strands = false } = {}) => {
    test(title, async () => {
      const under = await create()
      try {
        const scenario = new Scenario(under)
        await scenario.registerWorker('w1')
        await run(scenario)
        if (!strands) assert.deepEqual(await under.store.findStranded(), [], 'stranded runs')
      } finally {
        await under.close()
      }
    })
  }
}

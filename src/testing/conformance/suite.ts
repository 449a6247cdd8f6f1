import assert from 'node:assert/strict'
import { Scenario } from './scenario.ts'
import type { StoreUnderTest } from './store_under_test.ts'

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

import type { Store } from '../../src/contracts/store.ts'
import { until } from '../support/until.ts'

/** Resolves once a run waits for something, or for a worker. */
export async function suspended(store: Pick<Store, 'getRun'>, runId: string): Promise<void> {
  await until(async () => {
    const run = await store.getRun(runId)
    return run?.status === 'suspended'
  })
}

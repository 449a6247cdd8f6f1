import { test } from '@japa/runner'
import { recovery } from '../../src/maintenance/recovery.ts'

const LEASE_MS = 30_000

/** What one pass tells, where the store finds this. */
async function told(
  found: { workers: number; runs: number },
  { healthyMs = LEASE_MS }: { healthyMs?: number } = {}
) {
  const seen: unknown[] = []
  let passes = 0
  const task = recovery({
    recover: async () => {
      passes++
      return found
    },
    leaseMs: LEASE_MS,
    healthyMs: () => healthyMs,
    onRecovered: (recovered) => seen.push(recovered),
  })
  await task.runOnce()
  return { passes, seen }
}

test.group('A pass of recovery', () => {
  for (const found of [
    { workers: 1, runs: 2 },
    { workers: 1, runs: 0 },
    { workers: 0, runs: 2 },
  ])
    test(`tells that ${found.workers} workers were lost, and ${found.runs} runs recovered`, async ({
      assert,
    }) => {
      assert.deepEqual(await told(found), { passes: 1, seen: [found] })
    })

  test('tells nothing where nothing was found', async ({ assert }) => {
    assert.deepEqual(await told({ workers: 0, runs: 0 }), { passes: 1, seen: [] })
  })

  test('looks for nobody while the own connection has not been healthy for a lease (P9)', async ({
    assert,
  }) => {
    const { passes } = await told({ workers: 1, runs: 1 }, { healthyMs: LEASE_MS - 1 })
    assert.equal(passes, 0)
  })
})

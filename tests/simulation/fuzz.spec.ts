import { test } from '@japa/runner'
import { attributeUnhandledRejections } from '../../src/worker/unhandled_rejections.ts'
import { type Campaign, runCampaign } from './campaign.ts'

const RANDOM_SEED = 1 + Math.floor(Math.random() * 1e8)

/** Runs bodies, and counts the rejections that nobody handled. */
async function fuzz(firstSeed: number, bodies: number): Promise<Campaign & { unhandled: number }> {
  let unhandled = 0
  const count = () => void unhandled++
  const stopAttributing = attributeUnhandledRejections()
  process.on('unhandledRejection', count)
  try {
    const campaign = await runCampaign({ firstSeed, bodies, maxDivergences: 3 })
    return { ...campaign, unhandled }
  } finally {
    process.off('unhandledRejection', count)
    stopAttributing()
  }
}

test.group('Random bodies, cut at every commit', (group) => {
  group.each.timeout(300_000)

  for (const [what, firstSeed, bodies] of [
    ['of fixed seeds', 1, 250],
    [`of seeds from ${RANDOM_SEED} on`, RANDOM_SEED, 50],
  ] as const)
    test(`${bodies} bodies ${what} come to what their histories determine, wherever they are cut (P1, P2, P3, P4)`, async ({
      assert,
    }) => {
      const { divergences, unhandled, ...counts } = await fuzz(firstSeed, bodies)
      assert.deepEqual(divergences, [], `seeds from ${firstSeed} on`)
      assert.equal(unhandled, 0)
      assert.equal(counts.bodies, bodies)
      assert.isAbove(counts.cuts, bodies * 5)
      assert.isAbove(counts.steps, bodies * 5)
      assert.isAbove(counts.sent, bodies * 5)
    })
})

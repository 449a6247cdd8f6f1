/*
 * Random bodies, cut at every commit. From the root of the package:
 *
 *   npm run fuzz -- --bodies 10000 [--seed 1] [--plan]
 *
 * Prints what was run and each body that diverged with the seed that makes it again (`--seed N --bodies 1`, and with
 * `--plan` the body itself). Exits with 1 if any did.
 */
import { parseArgs } from 'node:util'
import { attributeUnhandledRejections } from '../../src/worker/unhandled_rejections.ts'
import { planBody } from './body_plan.ts'
import { type Campaign, runCampaign } from './campaign.ts'

const { values } = parseArgs({
  options: {
    bodies: { type: 'string', default: '1000' },
    seed: { type: 'string', default: '1' },
    stop: { type: 'string', default: '20' },
    json: { type: 'boolean', default: false },
    plan: { type: 'boolean', default: false },
  },
})
const bodies = Number(values.bodies)
const firstSeed = Number(values.seed)

let unhandled = 0
attributeUnhandledRejections()
process.on('unhandledRejection', (reason) => {
  if (unhandled++ < 3) console.error('Unhandled rejection:', reason)
})
if (values.plan) console.log(JSON.stringify(planBody(firstSeed), null, 1))

const started = performance.now()
let shownAt = started
const campaign = await runCampaign({
  ...{ firstSeed, bodies, maxDivergences: Number(values.stop) },
  onProgress: (now) => {
    if (values.json || performance.now() - shownAt < 10_000) return
    shownAt = performance.now()
    console.log(describe(now))
  },
})
const seconds = (performance.now() - started) / 1_000
const exitCode = campaign.divergences.length === 0 && unhandled === 0 ? 0 : 1
if (values.json) {
  const text = JSON.stringify({ ...campaign, seconds, unhandled })
  await new Promise((resolve) => process.stdout.write(text, resolve))
} else {
  for (const { seed, how, message } of campaign.divergences)
    console.log(`Body ${seed}, ${how}:\n  ${message}`)
  console.log(describe(campaign), `${unhandled} unhandled rejections.`)
}
process.exit(exitCode)

function describe({
  simulations,
  cuts,
  commits,
  steps,
  sent,
  divergences,
  ...rest
}: Campaign): string {
  const elapsed = ((performance.now() - started) / 1_000).toFixed(1)
  return (
    `${rest.bodies} bodies, ${simulations} simulations, ${cuts} cuts, ${commits} commits, ${steps} attempts of ` +
    `steps here and ${sent} elsewhere in ${elapsed} s: ${divergences.length} diverged.`
  )
}

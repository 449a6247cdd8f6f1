import { type PlannedBody, planBody } from './body_plan.ts'
import type { Cut } from './cut_store.ts'
import { mix, Random } from './random.ts'
import { simulate, SimulationFault, type SimulationParams } from './simulation.ts'
import { type EndedAs, verify } from './verified.ts'

/** What was found wrong with a body: the seed makes it again. */
interface Divergence {
  seed: number
  /** What was done to it: no cut, or which at which commits. */
  how: string
  message: string
}

export interface Campaign {
  bodies: number
  simulations: number
  cuts: number
  commits: number
  steps: number
  /** Attempts of steps that were sent to workers. */
  sent: number
  divergences: Divergence[]
}

/** Bodies under way at once: while one waits for its event loop, the others go on. */
const AT_ONCE = 16

export interface CampaignParams {
  /** Bodies have the seeds from this one on. */
  firstSeed: number
  bodies: number
  /** Ends when so many bodies have diverged. Default: never. */
  maxDivergences?: number
  onProgress?: (campaign: Campaign) => void
}

/**
 * Runs random bodies, each to its end without a cut, then cut at every commit, in both ways, then with two cuts and
 * with connections that break and processes that come back from the dead.
 */
export async function runCampaign(params: CampaignParams): Promise<Campaign> {
  const { firstSeed, bodies, maxDivergences = Infinity } = params
  const campaign: Campaign = {
    ...{ bodies: 0, simulations: 0, cuts: 0, commits: 0, steps: 0, sent: 0 },
    divergences: [],
  }
  let next = firstSeed
  const lane = async () => {
    while (next < firstSeed + bodies && campaign.divergences.length < maxDivergences) {
      const divergence = await new Trial(next++, campaign).run()
      if (divergence) campaign.divergences.push(divergence)
      campaign.bodies++
      params.onProgress?.(campaign)
    }
  }
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, bodies) }, lane))
  return campaign
}

/** Everything that is done to one body. */
class Trial {
  #seed: number
  #campaign: Campaign
  #body: PlannedBody
  #random: Random
  #how = ''

  constructor(seed: number, campaign: Campaign) {
    this.#seed = seed
    this.#campaign = campaign
    this.#body = planBody(seed)
    this.#random = new Random(mix(seed, 'trial'))
  }

  async run(): Promise<Divergence | null> {
    try {
      await this.#run()
      return null
    } catch (error) {
      const isFound = error instanceof SimulationFault
      const message = isFound ? error.message : String((error as Error).stack)
      return { seed: this.#seed, how: this.#how, message }
    }
  }

  async #run(): Promise<void> {
    const uncut = await this.#simulate(new Map())
    const commits = Array.from({ length: uncut.commits }, (_, index) => index + 1)
    const plans: [number, Cut][][] = []
    for (const at of commits) plans.push([[at, 'before']], [[at, 'after']])
    const at = () => this.#random.pick(commits)!
    for (const cut of ['stale', 'unreachable'] as const) plans.push([[at(), cut]])
    for (let count = 0; count < 2; count++)
      plans.push([
        [at(), 'before'],
        [at() + 1, 'after'],
      ])
    for (const cuts of plans) {
      const { ended } = await this.#simulate(new Map(cuts))
      if (this.#body.flavour !== 'any' && ended !== uncut.ended)
        throw new SimulationFault(`Ended as ${ended}, and without a cut as ${uncut.ended}`)
    }
  }

  async #simulate(cuts: ReadonlyMap<number, Cut>): Promise<{ ended: EndedAs; commits: number }> {
    const isFirst = cuts.size === 0
    const { flavour } = this.#body
    const random = this.#random
    const params: SimulationParams = {
      ...{ body: this.#body, cuts },
      // What is settled comes to the same in whatever order; the others keep their order up to the cut.
      seed: flavour === 'settled' && !isFirst ? random.below(1e9) : this.#seed,
      residentRuns: random.pick([1, 1, 2, 1_000] as const),
      processes: random.chance(0.8) ? 1 : 2,
      startedByProcess: this.#seed % 2 === 0,
    }
    const shown = [...cuts].map(([commit, cut]) => `${cut} commit ${commit}`).join(', ')
    const { seed, residentRuns, processes } = params
    this.#how = `${shown || 'no cut'} (order ${seed}, ${processes} processes, ${residentRuns} kept)`
    const simulated = await simulate(params)
    const campaign = this.#campaign
    campaign.simulations++
    campaign.cuts += simulated.cuts
    campaign.commits += simulated.commits
    campaign.steps += simulated.stepsBegun
    campaign.sent += simulated.stepsSent
    return { ended: await verify(simulated, flavour), commits: simulated.commits }
  }
}

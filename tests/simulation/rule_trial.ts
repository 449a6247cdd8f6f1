import { spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import type { Campaign } from './campaign.ts'
import type { Rule } from './rules.ts'

export interface RuleTrial {
  rule: string
  bodies: number
  /** Bodies that diverged, with what was wrong with the first. */
  diverged: number
  example: string | null
  /** Tests of the rules that failed. */
  failedTests: number
}

const TESTS = [
  'replay/deliveries',
  'replay/mismatches',
  'replay/operation_promises',
  'dispatch/turn',
]
const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** Runs random bodies and the tests of the rules in processes in which a rule is missing. */
export async function tryWithout(
  rule: Rule,
  params: { bodies: number; stopAt: number; what: readonly ('bodies' | 'tests')[] }
): Promise<RuleTrial> {
  const { bodies, stopAt, what } = params
  const trial: RuleTrial = {
    rule: rule.name,
    bodies: 0,
    diverged: 0,
    example: null,
    failedTests: 0,
  }
  if (what.includes('bodies')) {
    const args = ['--json', '--bodies', `${bodies}`, '--stop', `${stopAt}`]
    const shown = await run(rule, ['tests/simulation/fuzz.ts', ...args])
    const { divergences, ...campaign } = readCampaign(shown)
    trial.bodies = campaign.bodies
    trial.diverged = divergences.length
    trial.example = divergences[0]?.message.split('\n')[0] ?? null
  }
  if (what.includes('tests')) {
    const shown = await run(rule, [
      'bin/test.ts',
      ...TESTS.flatMap((name) => ['--files', `tests/${name}.spec.ts`]),
    ])
    trial.failedTests = Number(/(\d+) failed, \d+ skipped\s*$/.exec(shown)?.[1] ?? Number.NaN)
  }
  return trial
}

/** A process that a missing rule has killed prints nothing. */
function readCampaign(shown: string): Pick<Campaign, 'bodies' | 'divergences'> {
  if (shown !== '') return JSON.parse(shown) as Campaign
  return { bodies: 1, divergences: [{ seed: 0, how: '', message: 'The process died' }] }
}

async function run(rule: Rule, args: string[]): Promise<string> {
  const hooks = ['--import=@poppinss/ts-exec', '--import=./tests/simulation/without_rule.ts']
  const child = spawn(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', ...hooks, ...args],
    {
      cwd: ROOT,
      env: { ...process.env, DURABLE_WITHOUT_RULE: rule.name },
      stdio: ['ignore', 'pipe', 'ignore'],
    }
  )
  return text(child.stdout)
}

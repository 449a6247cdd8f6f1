/*
 * What happens when a rule of the replay loop is taken out. From the root of the package:
 *
 *   npm run fuzz:rules -- [--bodies 300] [--rule 'delivery by ordinal']
 *
 * Prints a table: rule, random bodies that diverged, tests that failed. Exits with 1 if a rule was not missed.
 */
import { parseArgs } from 'node:util'
import { tryWithout } from './rule_trial.ts'
import { RULES } from './rules.ts'

const { values } = parseArgs({
  options: { bodies: { type: 'string', default: '300' }, rule: { type: 'string' } },
})
const bodies = Number(values.bodies)
let isMissed = true
console.log('| taken out | bodies that diverged | tests that failed | for example |')
console.log('| --- | --- | --- | --- |')
for (const rule of RULES) {
  if (values.rule !== undefined && rule.name !== values.rule) continue
  const trial = await tryWithout(rule, { bodies, stopAt: Infinity, what: ['bodies', 'tests'] })
  const { diverged, failedTests, example } = trial
  isMissed &&= diverged > 0 || failedTests > 0
  const shown = example?.replaceAll('|', '/').slice(0, 120) ?? ''
  console.log(`| ${rule.name} | ${diverged} of ${trial.bodies} | ${failedTests} | ${shown} |`)
}
process.exit(isMissed ? 0 : 1)

import { readFileSync } from 'node:fs'
import { test } from '@japa/runner'
import { type RuleTrial, tryWithout } from './rule_trial.ts'
import { type Rule, RULES, withoutRule } from './rules.ts'

/** Processes at once. */
const LANES = 2

test.group('Rules of the replay loop', (group) => {
  group.each.timeout(180_000)
  const trials = new Map(RULES.map((rule) => [rule, Promise.withResolvers<RuleTrial>()]))

  group.setup(() => {
    const left = [...RULES]
    const lane = async () => {
      for (let rule = left.shift(); rule; rule = left.shift()) await tryOne(rule)
    }
    const tryOne = (rule: Rule) =>
      tryWithout(rule, { bodies: 60, stopAt: 1, what: rule.shownBy.slice(0, 1) }).then(
        trials.get(rule)!.resolve,
        trials.get(rule)!.reject
      )
    for (let count = 0; count < LANES; count++) void lane()
  })

  for (const rule of RULES) {
    const [shownBy] = rule.shownBy
    const what = shownBy === 'bodies' ? 'a random body diverges' : 'a test fails'
    test(`without "${rule.name}", ${what}`, async ({ assert }) => {
      const source = readFileSync(new URL(`../../${rule.file}`, import.meta.url), 'utf8')
      assert.notEqual(withoutRule(rule, source), source)
      const { diverged, failedTests } = await trials.get(rule)!.promise
      assert.isAbove(shownBy === 'bodies' ? diverged : failedTests, 0)
    })
  }
})

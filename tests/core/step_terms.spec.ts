import { test } from '@japa/runner'
import { checkStepTerms } from '../../src/core/step_terms.ts'
import { E_INVALID_STEP } from '../../src/errors.ts'
import { thrownBy } from './thrown_by.ts'

const LONGEST = 2_147_483_647

test.group('Step terms', () => {
  for (const terms of [
    {},
    { retries: undefined, timeoutMs: undefined, backoffMs: undefined },
    { retries: 0, timeoutMs: 1, backoffMs: 0 },
    { retries: 1_000_000, timeoutMs: LONGEST, backoffMs: LONGEST },
  ]) {
    test(`accepts ${JSON.stringify(terms)}`, ({ assert }) => {
      assert.isUndefined(checkStepTerms('charge', terms))
    })
  }

  for (const [term, value, says] of [
    ['retries', Number.NaN, `"retries" is NaN. Pass a whole number from 0 to 1000000`],
    ['retries', -1, `"retries" is -1. Pass a whole number from 0 to 1000000`],
    ['retries', Infinity, `"retries" is Infinity. Pass a whole number from 0 to 1000000`],
    ['retries', 1.5, `"retries" is 1.5. Pass a whole number from 0 to 1000000`],
    ['retries', null, `"retries" is of type object. Pass a whole number from 0 to 1000000`],
    [
      'timeoutMs',
      3e9,
      `"timeoutMs" is 3000000000. Pass a whole number of milliseconds from 1 to ${LONGEST}`,
    ],
    ['timeoutMs', 0, `"timeoutMs" is 0. Pass a whole number of milliseconds from 1 to ${LONGEST}`],
    [
      'timeoutMs',
      '5s',
      `"timeoutMs" is "5s". Pass a whole number of milliseconds from 1 to ${LONGEST}`,
    ],
    [
      'backoffMs',
      -1,
      `"backoffMs" is -1. Pass a whole number of milliseconds from 0 to ${LONGEST}`,
    ],
  ] as const) {
    test(`refuses ${term} ${JSON.stringify(value)}, with its name and its range`, ({ assert }) => {
      const error = thrownBy(() => checkStepTerms('charge', { [term]: value }))
      assert.instanceOf(error, E_INVALID_STEP)
      assert.equal((error as Error).message, `Invalid step "charge": ${says}`)
    })
  }
})

import string from '@poppinss/utils/string'
import { test } from '@japa/runner'
import { E_INVALID_DURATION } from '../../src/errors.ts'
import { parseDuration } from '../../src/core/duration.ts'
import { thrownBy } from './thrown_by.ts'

const HOUR = 3_600_000
const DURATIONS: [value: string | number, ms: number][] = [
  [0, 0],
  [-0, 0],
  [5, 5],
  [1.5, 2],
  ['0', 0],
  ['0s', 0],
  ['500', 500],
  ['500ms', 500],
  ['1.5 s', 1500],
  ['.5s', 500],
  ['1.s', 1000],
  [' 5 s ', 5000],
  ['5S', 5000],
  ['10 m', 600_000],
  ['1h30m', 1.5 * HOUR],
  ['1h 30m', 1.5 * HOUR],
  ['1 hour 30 minutes 5 seconds', 1.5 * HOUR + 5000],
  ['1.5h', 1.5 * HOUR],
  ['2 days', 48 * HOUR],
  ['1w', 168 * HOUR],
  ['1y', 8766 * HOUR],
  ['100y', 876_600 * HOUR],
]

const REFUSED: [value: unknown, says: RegExp][] = [
  [-1, /Invalid duration -1: it is negative/],
  ['-5s', /Invalid duration "-5s": it is negative/],
  [Number.NaN, /it is not a number/],
  [Number.POSITIVE_INFINITY, /too long/],
  [Number.NEGATIVE_INFINITY, /negative/],
  [2 ** 53, /too long/],
  ['9'.repeat(400), /too long/],
  ['', /not a number with a unit/],
  [' ', /not a number with a unit/],
  ['soon', /not a number with a unit/],
  ['s', /not a number with a unit/],
  ['.s', /not a number with a unit/],
  ['5 parsecs', /"parsecs" is not a unit of time/],
  ['5s5', /not a number with a unit/],
  ['5 5', /not a number with a unit/],
  ['1e3', /not a number with a unit/],
  ['0x10', /not a number with a unit/],
  ['1h-30m', /not a number with a unit/],
  ['PT5S', /not a number with a unit/],
  ['1,5h', /not a number with a unit/],
  ['5s; 3s', /not a number with a unit/],
  [null, /neither a number nor a text/],
  [undefined, /neither a number nor a text/],
  [{}, /neither a number nor a text/],
  [5n, /neither a number nor a text/],
]

test.group('duration', () => {
  for (const [value, ms] of DURATIONS) {
    test(`${JSON.stringify(value)} is ${ms} ms`, ({ assert }) => {
      assert.strictEqual(parseDuration(value), ms)
    })
  }

  for (const [value, says] of REFUSED) {
    test(`refuses ${typeof value} ${String(value).slice(0, 20)}`, ({ assert }) => {
      const error = thrownBy(() => parseDuration(value as string))
      assert.instanceOf(error, E_INVALID_DURATION)
      assert.match((error as Error).message, says)
      assert.match((error as Error).message, /Use milliseconds as a number/)
    })
  }

  test('reads every unit as AdonisJS does', ({ assert }) => {
    const units =
      'ms msec msecs millisecond milliseconds s sec secs second seconds m min mins minute minutes'.split(
        ' '
      )
    units.push(
      ...'h hr hrs hour hours d day days w wk wks week weeks y yr yrs year years'.split(' ')
    )
    for (const unit of units) {
      for (const text of [`3${unit}`, `2.5 ${unit}`]) {
        assert.equal(parseDuration(text), Math.round(string.milliseconds.parse(text)), text)
      }
    }
  })

  test('answers a long text at once', ({ assert }) => {
    assert.instanceOf(
      thrownBy(() => parseDuration(`${'1s'.repeat(20_000)}!`)),
      E_INVALID_DURATION
    )
    assert.instanceOf(
      thrownBy(() => parseDuration(`${'1'.repeat(20_000)}!`)),
      E_INVALID_DURATION
    )
  })
})

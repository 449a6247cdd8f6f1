import { test } from '@japa/runner'
import { cursorOf, positionOfCursor } from '../../src/core/run_cursor.ts'
import { E_INVALID_CURSOR } from '../../src/errors.ts'
import { thrownBy } from './thrown_by.ts'

test.group('Run cursor', () => {
  test('leads back to the run {id}, and needs no quoting')
    .with([
      { createdAt: 0, id: 'a' },
      { createdAt: 1_700_000_000_000, id: 'order:7/ü?~>>>' },
      { createdAt: 1, id: '日本'.repeat(100) },
    ])
    .run(({ assert }, position) => {
      assert.match(cursorOf(position), /^[\w-]+$/)
      assert.deepEqual(positionOfCursor(cursorOf(position)), position)
    })

  test('made by nobody is E_INVALID_CURSOR: {$self}')
    .with([
      '',
      'x',
      '1700000000000:r1',
      '1700000000000 r1',
      btoa('no colon'),
      btoa('%'),
      btoa('1e3%3Ar1'),
      btoa('99999999999999999999%3Ar1'),
      `${cursorOf({ createdAt: 1, id: 'r1' })}=`,
      'é'.repeat(100),
    ])
    .run(({ assert }, cursor) => {
      const error = thrownBy(() => positionOfCursor(cursor))
      assert.instanceOf(error, E_INVALID_CURSOR)
      assert.match(String(error), /Invalid cursor ".*"\. Pass "next" of the page before/)
      assert.isBelow(String(error).length, 250)
    })
})

import { test } from '@japa/runner'
import { E_INVALID_NAME } from '../../src/errors.ts'
import { checkName, claimKey, deriveId } from '../../src/core/name.ts'
import { thrownBy } from './thrown_by.ts'

const ALLOWED = [
  'a',
  'order-1',
  'Order-1',
  '日本',
  'a.b:c/d~e',
  'é',
  'dlq:x',
  '"',
  "'",
  '\\',
  '%',
  'x'.repeat(200),
]
const REFUSED: [title: string, value: unknown, says: RegExp][] = [
  ['an empty text', '', /Invalid run id "": it is empty\./],
  ['201 characters', 'x'.repeat(201), /Invalid run id "x{40}\.\.\.": it has 201 characters/],
  ['a space', 'a b', /Invalid run id "a b": it contains white space/],
  ['a space at the end', 'order-1 ', /white space/],
  ['a no-break space', 'a\u00a0b', /white space/],
  ['an ideographic space', 'a\u3000b', /white space/],
  ['a line separator', 'a\u2028b', /white space/],
  ['a byte order mark', '\ufeffa', /white space/],
  ['a tab', 'a\tb', /control character/],
  ['NUL', 'a\u0000', /Invalid run id "a\\u0000": it contains a control character/],
  ['DEL', 'a\u007f', /control character/],
  ['NEL', 'a\u0085', /control character/],
  ['a lone surrogate', 'a\ud800', /Invalid run id "a\\ud800": it contains a surrogate/],
  ['an emoji', 'a😀', /surrogate/],
  ['undefined', undefined, /Invalid run id of type undefined: it is not a string/],
  ['null', null, /of type null/],
  ['a number', 7, /of type number/],
]

test.group('name', () => {
  for (const name of ALLOWED) {
    test(`allows ${name.slice(0, 20)}`, ({ assert }) => {
      assert.equal(checkName('run id', name), name)
    })
  }

  for (const [title, value, says] of REFUSED) {
    test(`refuses ${title}`, ({ assert }) => {
      const error = thrownBy(() => checkName('run id', value))
      assert.instanceOf(error, E_INVALID_NAME)
      assert.match((error as Error).message, says)
    }).tags(['P8'])
  }

  test('refuses every control character and all white space', ({ assert }) => {
    for (let unit = 0; unit < 0x10000; unit++) {
      const character = String.fromCharCode(unit)
      const allowed = !/[\s\p{Cc}\p{Z}]/u.test(character) && (unit < 0xd800 || unit > 0xdfff)
      let accepted = true
      try {
        checkName('tag', `a${character}b`)
      } catch {
        accepted = false
      }
      if (accepted !== allowed) assert.fail(`U+${unit.toString(16)}`)
    }
    assert.equal(checkName('tag', 'ab'), 'ab')
  })
})

test.group('derived id', () => {
  test('is the parts, joined', ({ assert }) => {
    assert.equal(deriveId('order-1', '.child.', 3, '.', 0), 'order-1.child.3.0')
    assert.equal(deriveId('dlq:', 'order-1'), 'dlq:order-1')
    assert.equal(deriveId('x'.repeat(512)), 'x'.repeat(512))
  })

  test('keeps prefix and suffix and replaces the middle by a hash above 512 bytes', ({
    assert,
  }) => {
    const id = deriveId('dlq:', 'x'.repeat(600), '.onError.0')
    assert.equal(id.length, 512)
    assert.match(id, /^dlq:x{235}~[0-9a-f]{32}~x{229}\.onError\.0$/)
    assert.equal(id, deriveId('dlq:', 'x'.repeat(600), '.onError.0'))
  })

  test('never changes', ({ assert }) => {
    assert.equal(
      deriveId('x'.repeat(600), '.child.', 3),
      `${'x'.repeat(239)}~8794d08deadb9b06dbfffbd56a9270d0~${'x'.repeat(231)}.child.3`
    )
  })

  test('stays within 512 bytes of UTF-8 for every alphabet', ({ assert }) => {
    for (const character of ['x', 'é', '日']) {
      for (let length = 160; length < 620; length++) {
        const id = deriveId(character.repeat(length), '.child.1')
        assert.isAtMost(Buffer.byteLength(id), 512)
        assert.isTrue(id.isWellFormed())
      }
    }
  })

  test('differs where only the replaced middle differs', ({ assert }) => {
    const ids = new Set<string>()
    for (let index = 0; index < 1000; index++)
      ids.add(deriveId('a'.repeat(300), index, 'b'.repeat(300)))
    assert.equal(ids.size, 1000)
  })

  test('stays bounded when derived ids are derived from', ({ assert }) => {
    let id = 'run'
    const seen = new Set<string>()
    for (let depth = 0; depth < 200; depth++) {
      id = deriveId(id, '.child.', depth)
      seen.add(id)
      assert.isAtMost(id.length, 512)
    }
    assert.equal(seen.size, 200)
  })
})

test.group('claim key', () => {
  test('is different for different names, however they are cut', ({ assert }) => {
    assert.equal(claimKey('default', 'order', '1'), 'default order 1')
    assert.notEqual(claimKey('a', 'b:c', '1'), claimKey('a:b', 'c', '1'))
    assert.notEqual(claimKey('a', 'b1', '1'), claimKey('a', 'b', '11'))
  })
})

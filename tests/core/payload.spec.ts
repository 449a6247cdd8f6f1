import { isDeepStrictEqual } from 'node:util'
import { BaseModel } from '@adonisjs/lucid/orm'
import { test } from '@japa/runner'
import { DateTime, Duration } from 'luxon'
import {
  ChildError,
  E_PAYLOAD_TOO_LARGE,
  E_UNREADABLE_PAYLOAD,
  E_UNSERIALIZABLE,
  StepError,
} from '../../src/errors.ts'
import { decode, encode } from '../../src/core/payload.ts'
import { arbitraryValue } from './arbitrary_value.ts'
import { thrownBy } from './thrown_by.ts'

class Money {
  amount = 1
}
class Dated extends Date {}
class Listed extends Array<number> {}
class Teapot extends Error {}
class User extends BaseModel {}

function errorWith(properties: object): Error {
  return Object.assign(new TypeError('no', { cause: new RangeError('deep') }), properties)
}

function nested(depth: number): unknown {
  let value: unknown = 1
  for (let level = 0; level < depth; level++) value = level % 2 === 0 ? [value] : { down: value }
  return value
}

function cyclic(): object {
  const value: { items: unknown[] } = { items: [{}] }
  value.items.push({ owner: value })
  return value
}

const KEPT: Record<string, unknown> = {
  'null': null,
  'undefined': undefined,
  'undefined inside': { a: undefined, b: [undefined] },
  'true': true,
  'an empty text': '',
  'NaN, twice': [Number.NaN, Number.NaN],
  'infinities': [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY],
  'negative zero': [-0, 0],
  'extreme numbers': [Number.MAX_VALUE, Number.MIN_VALUE, Number.MAX_SAFE_INTEGER, 1e21, 0.1],
  'bigints, equal ones too': [0n, -1n, 2n ** 80n, 0n, { constructor: 0n, x: 0n }],
  'a Date': { at: new Date(1_700_000_000_123) },
  'Dates far away': [new Date(-62_135_596_800_001), new Date(8.64e15), new Date(-8.64e15)],
  'a Map': new Map<unknown, unknown>([
    ['a', 1],
    [1, new Map([[undefined, new Date(0)]])],
    [Number.NaN, undefined],
    [null, [1n]],
  ]),
  'a Set': new Set<unknown>([1, '1', undefined, Number.NaN, { a: new Set() }]),
  'a RegExp': [/a\/b[/\\]\n/giu, /(?:)/, /^\s+$/],
  'an error': new Error('plain'),
  'an error with code, cause and fields': errorWith({ code: 'E_X', status: 404, at: new Date(5) }),
  'an error whose name was set': Object.assign(new Error('x'), { name: 'Custom' }),
  'an error with a cause that is no error': new Error('x', {
    cause: { when: new Date(1), no: undefined },
  }),
  'an error with a field named constructor': Object.assign(new Error('x'), { constructor: 'no' }),
  'what a body catches of a step': new StepError(
    {
      name: 'Teapot',
      message: 'no',
      code: 'teapot',
      details: { ml: 2n },
      cause: { name: 'Error', message: 'x' },
    },
    2
  ),
  'what a body catches of a child': new ChildError(
    { name: 'Teapot', message: 'no' },
    { runId: 'pots.1', status: 'dead', attempts: 1 }
  ),
  'an AggregateError': new AggregateError([new Error('a'), 2n], 'all'),
  'errors of the language': [
    new SyntaxError('s'),
    new RangeError('r'),
    new URIError('u'),
    new EvalError('e'),
  ],
  'typed arrays': [
    new Uint8Array([0, 255]),
    new Int8Array([-128]),
    new Uint8ClampedArray([9]),
    new Int16Array([-2]),
    new Uint16Array([65_535]),
    new Int32Array([-3]),
    new Uint32Array([4_294_967_295]),
    new BigInt64Array([-1n]),
    new BigUint64Array([1n]),
    new Float32Array([Number.NaN, -0, 0.5]),
    new Float64Array([Number.NaN, -0, Number.POSITIVE_INFINITY]),
    new Uint8Array([1, 2, 3, 4]).subarray(1, 3),
    new Uint8Array(0),
  ],
  'a Buffer': Buffer.from('grüß'),
  'lone surrogates': ['\ud800', '\udc00x', { '\udfff': '\ud83d' }],
  'NUL': { '\u0000': 'a\u0000b' },
  'every control character and line separator': String.fromCharCode(
    ...Array.from({ length: 160 }, (_, i) => i),
    8232
  ),
  'emoji': '👩‍👩‍👧',
  'a key __proto__': JSON.parse('{"__proto__":{"a":1}}'),
  'keys that superjson refuses, beside a Date': JSON.parse(
    '{"__proto__":{"constructor":1},"prototype":[2]}',
    (_, v) => (v === 2 ? new Date(2) : v)
  ),
  'keys with dots, backslashes and nothing': {
    'a.b': { '': undefined, '\\': { 'c\\.d': 1n }, '0': new Set([1]) },
  },
  'keys that look like indices': { 0: undefined, 10: 1n, 2: { '01': Number.NaN } },
  'an object without a prototype': Object.assign(Object.create(null), {
    a: 1,
    b: { c: undefined },
  }),
  'one without a prototype with a key __proto__': Object.defineProperty(
    Object.create(null),
    '__proto__',
    {
      value: 1,
      enumerable: true,
      writable: true,
      configurable: true,
    }
  ),
  'an object with a hidden toJSON': Object.defineProperty({ id: 7, total: 12 }, 'toJSON', {
    value: () => ({ id: 7 }),
  }),
  'a getter': {
    get a() {
      return new Date(3)
    },
  },
  'a frozen object': Object.freeze({ a: Object.freeze([1]) }),
  'what is nested 499 deep': nested(499),
  'what is nested 499 deep around a bigint': { x: nested(498), y: 1n },
  'a large array': Array.from({ length: 5000 }, (_, index) => index),
}

const REFUSED: Record<string, [value: unknown, path: string, says: RegExp]> = {
  'a function': [{ run: () => 1 }, 'input.run', /a function.+Pass the data/],
  'a class': [Money, 'input', /a function/],
  'a symbol': [[Symbol('s')], 'input[0]', /a symbol.+string/],
  'a symbol as key': [{ a: { [Symbol('s')]: 1 } }, 'input.a', /symbol Symbol\(s\) as a key/],
  'a promise': [{ a: [Promise.resolve(1)] }, 'input.a[0]', /a promise.+Await it first/],
  'a WeakMap': [{ w: new WeakMap() }, 'input.w', /instance of WeakMap/],
  'an ArrayBuffer': [new ArrayBuffer(1), 'input', /instance of ArrayBuffer/],
  'a generator': [(function* () {})(), 'input', /instance of a class/],
  'a boxed text': [[Object('x')], 'input[0]', /instance of String/],
  'an instance of a class': [
    { items: [0, 1, 2, { owner: new Money() }] },
    'input.items[3].owner',
    /Money.+plain object/,
  ],
  'an instance with toJSON': [
    { u: new URLSearchParams('a=1'), d: Buffer },
    'input.u',
    /URLSearchParams/,
  ],
  'a subclass of Date': [[new Dated(0)], 'input[0]', /instance of Dated.+\.toJSON\(\)/],
  'a subclass of Array': [{ l: Listed.from([1]) }, 'input.l', /Listed, an array.+Array\.from/],
  'a subclass of Error': [
    { e: new Teapot('x') },
    'input.e',
    /Teapot, an error.+\{ name, message, code \}/,
  ],
  'the cause of an error': [new Error('x', { cause: new Money() }), 'input.cause', /Money/],
  'a field of an error': [Object.assign(new Error('x'), { on: () => 1 }), 'input.on', /a function/],
  'an invalid Date': [{ 'a b': new Date(Number.NaN) }, 'input["a b"]', /an invalid Date/],
  'a false Date': [[Object.create(Date.prototype)], 'input[0]', /only looks like a Date/],
  'a Date with a field': [
    Object.assign(new Date(0), { zone: 'UTC' }),
    'input',
    /a Date with a property of its own \(zone\)/,
  ],
  'a Map with a field': [Object.assign(new Map(), { x: 1 }), 'input', /a Map with a property/],
  'a Map with objects as keys': [
    new Map([[{ id: 1 }, 1]]),
    'input.get(0)',
    /a key that is an object/,
  ],
  'a value in a Map': [new Map([['k', [new Money()]]]), 'input.get("k")[0]', /Money/],
  'a value in a Set': [new Set([1, new Money()]), 'input.values()[1]', /Money/],
  'a RegExp in the middle of a search': [
    Object.assign(/a/g, { lastIndex: 1 }),
    'input',
    /lastIndex/,
  ],
  'a hole': [{ l: Object.assign([1], { 2: 3 }) }, 'input.l[1]', /a hole.+Fill/],
  'a very long sparse array': [Object.assign([], { length: 4_294_967_295 }), 'input[0]', /a hole/],
  'an array with a field': [
    { m: /b/.exec('abc') },
    'input.m',
    /an array with a property of its own \(index\)/,
  ],
  'a hole made up for by a field': [Object.assign(new Array(1), { x: 1 }), 'input[0]', /a hole/],
  'a cycle': [cyclic(), 'input.items[1].owner', /contains itself.+ids/],
  'a cycle through a Map': [
    ((m) => m.set('self', { m }))(new Map()),
    'input.get("self").m',
    /contains itself/,
  ],
  'a cycle of causes': [
    ((e) => Object.assign(e, { cause: e }))(new Error('x')),
    'input.cause',
    /contains itself/,
  ],
  'what is nested too deep': [
    nested(600),
    `input${'.down[0]'.repeat(250)}`,
    /nested more than 500 levels/,
  ],
  'a getter that throws': [
    {
      a: {
        get b() {
          throw new Error('mine')
        },
      },
    },
    'input.a.b',
    /throws when it is read/,
  ],
  'a revoked proxy': [
    { p: ((r) => (r.revoke(), r.proxy))(Proxy.revocable({}, {})) },
    'input.p',
    /throws when it is read/,
  ],
  'a Luxon DateTime': [{ at: DateTime.fromMillis(0) }, 'input.at', /Luxon DateTime.+\.toISO\(\)/],
  'a Luxon Duration': [{ d: Duration.fromMillis(5) }, 'input.d', /Luxon Duration.+\.toISO\(\)/],
  'a Lucid model': [
    { user: new User() },
    'input.user',
    /Lucid model \(User\).+its id.+\.serialize\(\)/,
  ],
}

test.group('payload | what is kept', () => {
  for (const [title, value] of Object.entries(KEPT)) {
    test(`keeps ${title} exactly`, ({ assert }) => {
      const text = encode(value)
      assert.isTrue(isDeepStrictEqual(decode(text), value), text.slice(0, 300))
      assert.isFalse(text.includes('\u0000'))
      assert.isTrue(text.isWellFormed())
      assert.equal(encode(decode(text)), text, 'a second round trip changes nothing')
    }).tags(['P8'])
  }

  test('keeps a URL', ({ assert }) => {
    const decoded = decode(encode({ u: new URL('https://ex.org/ä?q=1#x') })) as { u: unknown }
    assert.instanceOf(decoded.u, URL)
    assert.equal(String(decoded.u), 'https://ex.org/%C3%A4?q=1#x')
  }).tags(['P8'])

  test('keeps the stack, the cause and the code of an error', ({ assert }) => {
    const error = errorWith({ code: 'E_X' })
    const decoded = decode(encode(error)) as TypeError & { code: string }
    assert.instanceOf(decoded, TypeError)
    assert.equal(decoded.stack, error.stack)
    assert.equal(decoded.code, 'E_X')
    assert.instanceOf(decoded.cause, RangeError)
    assert.deepEqual(Object.keys(decoded), ['code'])
  }).tags(['P8', 'case 17'])

  test('gives back bytes that share no memory with anything else', ({ assert }) => {
    const decoded = decode(encode(new Uint8Array([1, 2]))) as Uint8Array
    assert.equal(decoded.buffer.byteLength, 2)
  })

  test('reads keys that need escapes, whatever other objects the process has read', ({
    assert,
  }) => {
    const keys = ['\\', '\n', '\u0000', '"', '\ud800', '\\n', '\nx', 'x\\', 'x\n', '.\\', '..']
    const texts = [{}, { z: 1n }].flatMap((more) =>
      keys.map((key) => encode({ a: 1, [key]: 2, ...more }))
    )
    for (let round = 0; round < 20; round++) {
      for (const text of texts) assert.equal(encode(decode(text)), text)
    }
    for (const text of texts) assert.notMatch(text, /\\[^"]*":/)
  }).tags(['P8'])

  test('does not pollute prototypes', ({ assert }) => {
    decode(
      encode(
        JSON.parse('{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}')
      )
    )
    decode(encode({ ...JSON.parse('{"constructor":{"prototype":{"polluted":true}}}'), a: 1n }))
    assert.isFalse('polluted' in {})
  })

  test('copies an object that occurs twice, with and without values that JSON lacks', ({
    assert,
  }) => {
    const shared = { a: 1 }
    for (const value of [
      [shared, shared],
      [shared, shared, 1n],
    ]) {
      const decoded = decode(encode(value)) as unknown[]
      assert.deepEqual(decoded, value)
      assert.notStrictEqual(decoded[0], decoded[1])
    }
  })

  test('changes neither the value nor what it contains', ({ assert }) => {
    const value = Object.freeze({ m: Object.freeze(new Map([['a', Object.freeze([undefined])]])) })
    encode(value)
    assert.isTrue(isDeepStrictEqual(value, { m: new Map([['a', [undefined]]]) }))
  })
})

test.group('payload | what is refused', () => {
  for (const [title, [value, path, says]] of Object.entries(REFUSED)) {
    test(`refuses ${title}, names the path and says what to pass`, ({ assert }) => {
      const error = thrownBy(() => encode(value, { label: 'input' }))
      assert.instanceOf(error, E_UNSERIALIZABLE)
      if (!(error instanceof E_UNSERIALIZABLE)) return
      assert.equal(error.path, path)
      assert.match(error.message, says)
      assert.isTrue(error.message.startsWith(`Cannot store ${path}: `))
      assert.equal(error.code, 'E_UNSERIALIZABLE')
    }).tags(['P8', 'case 17'])
  }

  test('keeps what a getter threw as the cause', ({ assert }) => {
    const mine = new Error('mine')
    const error = thrownBy(() =>
      encode({
        get a() {
          throw mine
        },
      })
    )
    assert.strictEqual((error as Error).cause, mine)
  })
})

test.group('payload | size', () => {
  test('measures bytes of UTF-8 and accepts exactly the limit', ({ assert }) => {
    const text = encode('äö')
    const size = Buffer.byteLength(text)
    assert.equal(size, text.length + 2)
    assert.equal(encode('äö', { maxBytes: size }), text)
    const error = thrownBy(() => encode('äö', { label: 'output', maxBytes: size - 1 }))
    assert.instanceOf(error, E_PAYLOAD_TOO_LARGE)
    assert.include(error, { size, limit: size - 1, code: 'E_PAYLOAD_TOO_LARGE' })
    assert.match(
      (error as Error).message,
      /^The output is too large: 12 bytes, and the limit is 11\./
    )
  })

  test('refuses a text of 10 MB by default', ({ assert }) => {
    const error = thrownBy(() => encode({ a: 'x'.repeat(10_000_000), b: 1n }))
    assert.instanceOf(error, E_PAYLOAD_TOO_LARGE)
    assert.include(error, { limit: 1_048_576 })
    assert.equal(
      (decode(encode('x'.repeat(10_000_000), { maxBytes: 2e7 })) as string).length,
      10_000_000
    )
  }).tags(['P8'])

  test('gives up early on a small object that unfolds into a huge tree', ({ assert }) => {
    let bomb: unknown = 1n
    for (let level = 0; level < 60; level++) bomb = [bomb, bomb]
    const error = thrownBy(() => encode(bomb))
    assert.instanceOf(error, E_PAYLOAD_TOO_LARGE)
    assert.match((error as Error).message, /at least \d+ bytes/)
  }).tags(['P8'])

  test('gives up early also where every value is plain JSON', ({ assert }) => {
    let bomb: unknown = 1
    for (let level = 0; level < 60; level++) bomb = [bomb, bomb]
    assert.instanceOf(
      thrownBy(() => encode(bomb)),
      E_PAYLOAD_TOO_LARGE
    )
  }).tags(['P8'])
})

test.group('payload | text', () => {
  const TEXTS: [value: unknown, text: string][] = [
    [{ a: [1, 'x', null] }, '{"v":{"a":[1,"x",null]}}'],
    [undefined, '{"v":null,"m":{"values":["undefined"],"v":1}}'],
    [
      { at: new Date(0) },
      '{"v":{"at":"1970-01-01T00:00:00.000Z"},"m":{"values":{"at":["Date"]},"v":1}}',
    ],
    [[5n, 5n], '{"v":["5","5"],"m":{"values":{"0":["bigint"],"1":["bigint"]},"v":1}}'],
    [
      new Uint8Array([1, 2]),
      '{"v":{"type":"Uint8Array","base64":"AQI="},"m":{"values":[["custom","bytes"]],"v":1}}',
    ],
    [
      { constructor: 'Ferrari', at: 1n },
      '{"v":[["constructor","Ferrari"],["at","1"]],"m":{"values":[["custom","object"],{"1.1":["bigint"]}],"v":1}}',
    ],
  ]
  for (const [value, text] of TEXTS) {
    test(`is ${text}`, ({ assert }) => {
      assert.equal(encode(value), text)
    })
  }

  const UNREADABLE = [
    '',
    'x',
    '1',
    'null',
    '[]',
    '{}',
    '{"v":1,"m":2}',
    '{"c":"zip","k":"1","d":"AA=="}',
  ]
  UNREADABLE.push(
    '{"v":1,"m":{"values":[["custom","later"]],"v":1}}',
    '{"v":1,"m":{"values":["later"],"v":1}}'
  )
  for (const text of UNREADABLE) {
    test(`refuses to read ${text || 'an empty text'}`, ({ assert }) => {
      assert.instanceOf(
        thrownBy(() => decode(text)),
        E_UNREADABLE_PAYLOAD
      )
    }).tags(['case 3'])
  }
})

test.group('payload | any value', () => {
  test('decoding what was encoded gives a deeply equal value, for 4,000 generated values', ({
    assert,
  }) => {
    for (let seed = 1; seed <= 4000; seed++) {
      const value = arbitraryValue(seed)
      const text = encode(value)
      if (!isDeepStrictEqual(decode(text), value)) assert.fail(`seed ${seed}: ${text}`)
      if (encode(decode(text)) !== text)
        assert.fail(`seed ${seed} changes at the second round trip: ${text}`)
      if (text.includes('\u0000') || !text.isWellFormed())
        assert.fail(`seed ${seed} is unsafe: ${text}`)
    }
    assert.isTrue(isDeepStrictEqual(arbitraryValue(7), arbitraryValue(7)), 'a seed gives one value')
  }).tags(['P8'])
})

test.group('payload | whose it is', () => {
  const of = 'step "cards.charge"'

  test('stands behind the path, which it does not become a part of', ({ assert }) => {
    const error = thrownBy(() => encode({ items: [{ owner() {} }] }, { label: 'output', of }))
    assert.match((error as Error).message, /^Cannot store output\.items\[0\]\.owner of step "cards/)
    assert.propertyVal(error, 'path', 'output.items[0].owner')
  })

  test('is named where a value is too large, plain or not', ({ assert }) => {
    for (const value of ['x'.repeat(100), new Map([[1, 'x'.repeat(100)]])]) {
      const error = thrownBy(() => encode(value, { label: 'output', of, maxBytes: 50 }))
      assert.match((error as Error).message, /^The output of step "cards\.charge" is too large: /)
    }
  })
})

import { Exception } from '@poppinss/utils/exception'
import { test } from '@japa/runner'
import { errors as vineErrors } from '@vinejs/vine'
import { E_UNREADABLE_PAYLOAD, FatalError } from '../../src/errors.ts'
import { encode } from '../../src/core/payload.ts'
import { decodeError, encodeError, serializeError } from '../../src/core/serialized_error.ts'
import { thrownBy } from './thrown_by.ts'

function withoutStack(thrown: unknown) {
  const error = serializeError(thrown)
  delete error.stack
  return error
}

function failing(properties: object): Error {
  return Object.assign(new Error('no'), properties)
}

function hostile(): Error {
  const error = new Error('no')
  for (const key of [
    'name',
    'message',
    'code',
    'stack',
    'details',
    'retryable',
    'cause',
    'errors',
  ]) {
    Object.defineProperty(error, key, {
      get() {
        throw new Error('hostile')
      },
    })
  }
  return error
}

function revoked(): object {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
}

function causes(depth: number): Error {
  let error = new Error(`level ${depth}`)
  for (let level = depth - 1; level >= 0; level--)
    error = new Error(`level ${level}`, { cause: error })
  return error
}

const cycle: { self?: unknown } = {}
cycle.self = cycle

const ERRORS: [title: string, thrown: unknown, recorded: object][] = [
  ['an Error', new Error('no'), { name: 'Error', message: 'no' }],
  ['an Error without a message', new Error(), { name: 'Error', message: '' }],
  ['an error of the language', new TypeError('no'), { name: 'TypeError', message: 'no' }],
  [
    'an error with a code',
    failing({ code: 'ENOENT' }),
    { name: 'Error', message: 'no', code: 'ENOENT' },
  ],
  [
    'a code that is a number',
    failing({ code: 1062 }),
    { name: 'Error', message: 'no', code: '1062' },
  ],
  ['a code that is neither', failing({ code: {} }), { name: 'Error', message: 'no' }],
  ['an empty code', failing({ code: '' }), { name: 'Error', message: 'no' }],
  [
    'a code no column could hold',
    failing({ code: `a\u0000\ud800${'x'.repeat(300)}` }),
    {
      name: 'Error',
      message: 'no',
      code: `a\ufffd\ufffd${'x'.repeat(197)}`,
    },
  ],
  [
    'details',
    failing({ details: { a: [undefined, 1n] } }),
    { name: 'Error', message: 'no', details: { a: [undefined, 1n] } },
  ],
  [
    'details that are null',
    failing({ details: null }),
    { name: 'Error', message: 'no', details: null },
  ],
  ['retryable', failing({ retryable: true }), { name: 'Error', message: 'no', retryable: true }],
  [
    'a retryable that is no boolean',
    failing({ retryable: 'no' }),
    { name: 'Error', message: 'no' },
  ],
  [
    'a FatalError',
    new FatalError('no', 'c', [1]),
    {
      name: 'FatalError',
      message: 'no',
      code: 'c',
      details: [1],
      retryable: false,
    },
  ],
  [
    'an exception of AdonisJS',
    new Exception('no', { code: 'E_X', status: 404 }),
    {
      name: 'Exception',
      message: 'no',
      code: 'E_X',
    },
  ],
  [
    'a failed validation',
    new vineErrors.E_VALIDATION_ERROR([{ field: 'a', message: 'bad' }]),
    {
      name: 'Error',
      message: 'Validation failure',
      code: 'E_VALIDATION_ERROR',
      details: [{ field: 'a', message: 'bad' }],
      retryable: false,
    },
  ],
  [
    'an AggregateError',
    new AggregateError([failing({ code: 'c' }), 'x'], 'all'),
    {
      name: 'AggregateError',
      message: 'all',
      details: [
        { name: 'Error', message: 'no', code: 'c' },
        { name: 'NonError', message: 'x' },
      ],
    },
  ],
  [
    'a cause that is no error',
    new Error('no', { cause: 'x' }),
    {
      name: 'Error',
      message: 'no',
      cause: { name: 'NonError', message: 'x', details: 'x' },
    },
  ],
  ['a text', 'no', { name: 'NonError', message: 'no', details: 'no' }],
  ['undefined', undefined, { name: 'NonError', message: 'undefined', details: undefined }],
  ['null', null, { name: 'NonError', message: 'null', details: null }],
  ['a number', -0, { name: 'NonError', message: '0', details: -0 }],
  ['an object', { a: 1 }, { name: 'NonError', message: '[object Object]', details: { a: 1 } }],
  [
    'an object with message and code',
    { message: 'no', code: 7, retryable: false },
    {
      name: 'NonError',
      message: 'no',
      code: '7',
      retryable: false,
      details: { message: 'no', code: 7, retryable: false },
    },
  ],
  [
    'a function',
    () => 1,
    {
      name: 'NonError',
      message: 'a function',
      details:
        'Not recorded: Cannot store details: it is a function. Pass the data it needs, and call it where the data arrives',
    },
  ],
  [
    'a symbol',
    Symbol('s'),
    {
      name: 'NonError',
      message: 'Symbol(s)',
      details: 'Not recorded: Cannot store details: it is a symbol. Pass a string',
    },
  ],
  [
    'an object with a cycle',
    cycle,
    {
      name: 'NonError',
      message: '[object Object]',
      details:
        'Not recorded: Cannot store details.self: it is an object that contains itself. ' +
        'Pass ids in place of the object that leads back to itself',
    },
  ],
]

test.group('serialized error', () => {
  for (const [title, thrown, recorded] of ERRORS) {
    test(`records ${title}, and reads it back`, ({ assert }) => {
      assert.deepEqual(withoutStack(thrown), recorded)
      assert.deepEqual(decodeError(encodeError(serializeError(thrown))), serializeError(thrown))
    }).tags(['case 24', 'case 25'])
  }

  test('records the failure although its details cannot be stored', ({ assert }) => {
    const error = serializeError(failing({ code: 'c', details: { user: { save: () => 1 } } }))
    assert.include(error, { message: 'no', code: 'c' })
    assert.match(
      String(error.details),
      /^Not recorded: Cannot store details\.user\.save: it is a function/
    )
  }).tags(['P8', 'OE-11'])

  test('records an error whose every property throws', ({ assert }) => {
    assert.deepEqual(serializeError(hostile()), { name: 'Error', message: '' })
  }).tags(['P8'])

  test('records what cannot even be looked at', ({ assert }) => {
    const error = serializeError(revoked())
    assert.include(error, { name: 'NonError', message: 'an object that cannot be read' })
    assert.match(String(error.details), /throws when it is read/)
    assert.equal(serializeError(Object.create(null)).message, '[object Object]')
    assert.equal(serializeError(failing({ cause: revoked(), details: revoked() })).message, 'no')
  }).tags(['P8', 'case 25'])

  test('keeps NUL and half a surrogate pair in messages, in a text every database takes', ({
    assert,
  }) => {
    const text = encodeError(serializeError(new Error('a\u0000b\ud800')))
    assert.isFalse(text.includes('\u0000'))
    assert.isTrue(text.isWellFormed())
    assert.equal(decodeError(text).message, 'a\u0000b\ud800')
  }).tags(['case 18'])

  test('a name is as fit for a column as a code, for which it stands in', ({ assert }) => {
    const error = failing({})
    error.name = `a\u0000b\ud800${'x'.repeat(300)}`
    const { name } = serializeError(error)
    assert.match(name, /^a\ufffdb\ufffdx+$/)
    assert.lengthOf(name, 200)
  }).tags(['case 18'])

  test('keeps causes five deep, and ends at a cycle', ({ assert }) => {
    let error: ReturnType<typeof serializeError> | undefined = serializeError(causes(9))
    const messages: string[] = []
    for (; error; error = error.cause) messages.push(error.message)
    assert.deepEqual(
      messages,
      [0, 1, 2, 3, 4, 5].map((level) => `level ${level}`)
    )

    const own = new Error('own')
    own.cause = own
    assert.equal(serializeError(own).cause?.cause?.cause?.cause?.cause?.message, 'own')
    assert.isUndefined(serializeError(own).cause?.cause?.cause?.cause?.cause?.cause)
  })

  test('keeps the stack', ({ assert }) => {
    const error = new Error('no')
    assert.equal(serializeError(error).stack, error.stack)
  })

  test('records what the package throws for a value under its recorded code, not to be retried', ({
    assert,
  }) => {
    const unserializable = serializeError(
      thrownBy(() => encode({ f: () => 1 }, { label: 'output' }))
    )
    assert.include(unserializable, { code: 'unserializable', retryable: false })
    assert.match(unserializable.message, /output\.f/)
    const tooLarge = serializeError(thrownBy(() => encode('x'.repeat(100), { maxBytes: 10 })))
    assert.include(tooLarge, { code: 'payload_too_large', retryable: false })
  }).tags(['case 17'])

  test('records a failure of any size, shorter', ({ assert }) => {
    const huge = failing({
      code: 'c',
      message: '\u0000'.repeat(10_000_000),
      details: 'y'.repeat(10_000_000),
      cause: failing({ details: 'z'.repeat(400_000) }),
    })
    const recorded = serializeError(huge)
    assert.isBelow(recorded.message.length, 40_000)
    assert.match(recorded.message, /\.\.\. \(10000000 characters\)$/)
    assert.match(
      String(recorded.details),
      /^Not recorded: The details is too large|^Not recorded: The details/
    )
    for (const maxBytes of [1, 20_000, 300_000, 1_000_000]) {
      const text = encodeError(recorded, { maxBytes })
      assert.isAtMost(Buffer.byteLength(text), Math.max(16_384, maxBytes))
      assert.include(decodeError(text), { name: 'Error', code: 'c' })
    }
  }).tags(['P8'])

  test('gives up the cause first, then the details, then the stack', ({ assert }) => {
    const full = serializeError(
      failing({ details: 'd'.repeat(30_000), cause: failing({ details: 'c'.repeat(30_000) }) })
    )
    const kept = (maxBytes: number) => decodeError(encodeError(full, { maxBytes }))
    assert.deepEqual(kept(100_000), full)
    assert.isUndefined(kept(50_000).cause)
    assert.equal(kept(50_000).details, full.details)
    assert.equal(kept(20_000).details, 'Not recorded: the failure was too large')
    assert.equal(kept(20_000).stack, full.stack)
  })

  for (const text of [
    '',
    '{"v":1}',
    '{"v":null}',
    '{"v":{"message":"x"}}',
    '{"v":{"name":1,"message":"x"}}',
  ]) {
    test(`refuses to read ${text || 'an empty text'}`, ({ assert }) => {
      assert.instanceOf(
        thrownBy(() => decodeError(text)),
        E_UNREADABLE_PAYLOAD
      )
    })
  }
})

import { test } from '@japa/runner'
import * as errors from '../../src/errors.ts'
import { serializeError } from '../../src/core/serialized_error.ts'

const { ChildError, E_RUN_FAILED, FatalError, SchemaValidationError, StepError } = errors

class InvalidLine extends FatalError {
  static override readonly code = 'invalid_line'
  constructor(message: string, issues?: unknown) {
    super(message, InvalidLine.code, issues)
  }
}
class NoStock extends FatalError {
  static override readonly code = 'no_stock'
}
class Plain extends FatalError {}

function caught(error: Error) {
  return new StepError(serializeError(error), 2)
}

test.group('recorded codes', () => {
  test('are these, and only new ones are ever added', ({ assert }) => {
    assert.deepEqual(errors.RECORDED_CODES, [
      'max_recovery_attempts',
      'execution_timeout',
      'step_timeout',
      'step_lost',
      'cancelled',
      'child_failed',
      'run_id_taken',
      'invalid_input',
      'invalid_output',
      'schema_validation',
      'signal_timeout',
      'payload_too_large',
      'unserializable',
      'non_determinism',
      'foreign_await',
      'nested_operation',
      'operation_not_awaited',
      'step_called_directly',
    ])
    assert.isTrue(Object.isFrozen(errors.RECORDED_CODES))
  })

  test('are lower snake case, and the lists made of them name no other', ({ assert }) => {
    const known = new Set<string>(errors.RECORDED_CODES)
    for (const code of known) assert.match(code, /^[a-z]+(_[a-z]+)*$/)
    for (const code of [...errors.UNROUTED_CODES, ...errors.RECORDED_AS.values()])
      assert.isTrue(known.has(code))
    assert.deepEqual([...errors.UNROUTED_CODES], errors.RECORDED_CODES.slice(-5))
  })
})

test.group('thrown errors', () => {
  const thrown = Object.entries(errors).filter(([name]) => name.startsWith('E_'))

  test('each carries the code it is exported under', ({ assert }) => {
    for (const [name, value] of thrown) assert.equal(Reflect.get(value, 'code'), name)
    assert.includeMembers(
      thrown.map(([name]) => name),
      [...errors.RECORDED_AS.keys()]
    )
  })

  test('say what, where and what to do', ({ assert }) => {
    const error = new errors.E_RUN_ID_TAKEN(['order-1', 'order', 'invoice'])
    assert.equal(
      error.message,
      'The run id "order-1" belongs to a run of workflow "order", so a run of "invoice" cannot have it. Choose another id'
    )
    assert.equal(error.status, 409)
    assert.equal(new errors.E_INVALID_NAME(['run id', '"a b"', 'it has a space']).status, 400)
    const size = { what: 'input', size: 2, limit: 1 }
    assert.equal(new errors.E_PAYLOAD_TOO_LARGE(size).status, 413)
    assert.match(
      new errors.E_NON_DETERMINISM([3, 'step "a"', 'sleep']).message,
      /position 3.+step "a".+sleep.+a new version/
    )
  })

  test('a failed run has the run, its status, and the code and details of its failure', ({
    assert,
  }) => {
    const failure = {
      runId: 'r',
      status: 'failed',
      message: 'no',
      code: 'invalid_line',
      details: [1],
    }
    const error = new E_RUN_FAILED(failure)
    assert.instanceOf(error, Error)
    assert.include(error, {
      runId: 'r',
      status: 'failed',
      code: 'invalid_line',
      message: 'Run "r" has failed (invalid_line): no',
    })
    assert.deepEqual(error.details, [1])
    assert.isTrue(InvalidLine.is(error))
    assert.equal(
      new E_RUN_FAILED({ runId: 'r', status: 'dead', message: 'no' }).code,
      'E_RUN_FAILED'
    )
  })

  for (const { status, code, message } of [
    { status: 'failed', code: undefined, message: 'Run "r" has failed: no' },
    { status: 'failed', code: 'bad_line', message: 'Run "r" has failed (bad_line): no' },
    { status: 'cancelled', code: 'cancelled', message: 'Run "r" was cancelled: no' },
    {
      status: 'cancelled',
      code: 'execution_timeout',
      message: 'Run "r" was cancelled (execution_timeout): no',
    },
    {
      status: 'dead',
      code: 'max_recovery_attempts',
      message: 'Run "r" is dead (max_recovery_attempts): no',
    },
    { status: 'blocked', code: 'foreign_await', message: 'Run "r" is blocked (foreign_await): no' },
  ]) {
    test(`says of a run: ${message}`, ({ assert }) => {
      assert.equal(new E_RUN_FAILED({ runId: 'r', status, code, message: 'no' }).message, message)
    })
  }

  test('a failed run that nobody caught answers a request with an HTTP status', ({ assert }) => {
    const error = new E_RUN_FAILED({ runId: 'r', status: 'failed', message: 'no', code: 'c' })
    const sent: unknown[] = []
    error.handle(error, {
      response: {
        status: (code) => ({
          send: (body) => void sent.push(code, body),
        }),
      },
    })
    assert.deepEqual(sent, [
      500,
      { errors: [{ message: 'Run "r" has failed (c): no', code: 'c' }] },
    ])
  })
})

test.group('FatalError', () => {
  test('has message, code and details, and is not retried', ({ assert }) => {
    const error = new FatalError('no', 'mine', { line: 3 })
    assert.instanceOf(error, Error)
    assert.include(error, { name: 'FatalError', message: 'no', code: 'mine', retryable: false })
    assert.deepEqual(error.details, { line: 3 })
  })

  test('has no code unless it or its class has one', ({ assert }) => {
    assert.isUndefined(new FatalError('no').code)
    assert.isUndefined(new Plain('no').code)
    assert.equal(new NoStock('no').code, 'no_stock')
    assert.equal(new NoStock('no', 'other').code, 'other')
    assert.equal(new NoStock('no').name, 'NoStock')
  })

  const GUARDS: [title: string, matches: boolean, expected: boolean][] = [
    ['a guard matches its own class', InvalidLine.is(new InvalidLine('x')), true],
    [
      'a guard matches what came back from the store',
      InvalidLine.is(caught(new InvalidLine('x'))),
      true,
    ],
    [
      'a guard matches by code, whatever the class',
      InvalidLine.is(Object.assign(new Error('x'), { code: 'invalid_line' })),
      true,
    ],
    ['a guard does not match another code', InvalidLine.is(new NoStock('x')), false],
    ['a guard does not match an error without a code', InvalidLine.is(new Error('x')), false],
    ['a guard does not match null', InvalidLine.is(null), false],
    ['a guard does not match a text', InvalidLine.is('invalid_line'), false],
    ['a class without a code matches its own instances', Plain.is(new Plain('x')), true],
    ['a class without a code matches no other', Plain.is(new FatalError('x')), false],
    ['FatalError.is matches every fatal error', FatalError.is(new InvalidLine('x')), true],
    ['FatalError.is matches one that came back', FatalError.is(caught(new FatalError('x'))), true],
    ['FatalError.is matches no other', FatalError.is(caught(new Error('x'))), false],
    [
      'SchemaValidationError.is matches invalid_input',
      SchemaValidationError.is(new SchemaValidationError('x', 'invalid_input')),
      true,
    ],
    [
      'SchemaValidationError.is matches invalid_output',
      SchemaValidationError.is(caught(new SchemaValidationError('x', 'invalid_output'))),
      true,
    ],
    [
      'SchemaValidationError.is matches its own code',
      SchemaValidationError.is(new SchemaValidationError('x')),
      true,
    ],
    [
      'SchemaValidationError.is matches no other',
      SchemaValidationError.is(new InvalidLine('x')),
      false,
    ],
  ]
  for (const [title, matches, expected] of GUARDS) {
    test(title, ({ assert }) => assert.equal(matches, expected)).tags(['OE-3'])
  }

  test('a schema failure has the code of its place, and its class the common one', ({ assert }) => {
    assert.equal(SchemaValidationError.code, 'schema_validation')
    assert.equal(new SchemaValidationError('x').code, 'schema_validation')
    const error = new SchemaValidationError('x', 'invalid_input', [{ message: 'bad' }])
    assert.instanceOf(error, FatalError)
    assert.equal(error.code, 'invalid_input')
    assert.deepEqual(error.details, [{ message: 'bad' }])
  }).tags(['OE-20', 'OE-21'])
})

test.group('what a body catches', () => {
  test('a StepError is made of the record alone', ({ assert }) => {
    const record = serializeError(new InvalidLine('line 3', [{ path: 'a' }]))
    const error = new StepError(record, 4)
    assert.instanceOf(error, Error)
    assert.include(error, {
      name: 'InvalidLine',
      message: 'line 3',
      code: 'invalid_line',
      attempts: 4,
      retryable: false,
    })
    assert.deepEqual(error.details, [{ path: 'a' }])
    assert.equal(error.stack, record.stack)
    assert.notInstanceOf(error, ChildError)
  })

  test('a StepError has the causes of what was thrown, and a record of it has them again', ({
    assert,
  }) => {
    const refused = Object.assign(new Error('refused'), { code: 'ECONNREFUSED' })
    const thrown = new Error('not charged', { cause: new Error('no answer', { cause: refused }) })
    const error = new StepError(serializeError(thrown), 1)
    const { cause } = error as { cause?: { message: string; cause?: { code: string } } }
    assert.instanceOf(cause, Error)
    assert.equal(cause?.message, 'no answer')
    assert.equal(cause?.cause?.code, 'ECONNREFUSED')
    assert.deepEqual(serializeError(error), serializeError(thrown))
    assert.isFalse('cause' in new StepError({ name: 'X', message: 'm' }, 1))
  })

  test('a StepError without a recorded stack shows none of this process', ({ assert }) => {
    assert.equal(new StepError({ name: 'X', message: 'm' }, 1).stack, 'X: m')
  })

  test('a ChildError has the code of the child, its id and its status', ({ assert }) => {
    const error = new ChildError(
      { name: 'X', message: 'm', code: 'invalid_line' },
      { runId: 'p.child.1.0', status: 'dead', attempts: 1 }
    )
    assert.include(error, {
      code: 'invalid_line',
      runId: 'p.child.1.0',
      status: 'dead',
      attempts: 1,
    })
    assert.isTrue(InvalidLine.is(error))
    assert.notInstanceOf(error, StepError)
  })

  test('thrown on, it is recorded with what it was made of', ({ assert }) => {
    const record = serializeError(new InvalidLine('line 3', [1]))
    assert.deepEqual(serializeError(new StepError(record, 4)), record)
  })

  test('a ChildError among the causes names its child, also once it has been recorded', ({
    assert,
  }) => {
    const child = { runId: 'p.child.1', status: 'failed', attempts: 1 } as const
    const thrown = new Error('no line', {
      cause: new ChildError({ name: 'X', message: 'm' }, child),
    })
    const record = serializeError(thrown)
    assert.equal(record.cause?.runId, 'p.child.1')
    assert.deepEqual(serializeError(new StepError(record, 1)), record)
  })
})

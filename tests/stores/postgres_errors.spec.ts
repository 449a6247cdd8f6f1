import { test } from '@japa/runner'
import {
  errorClass,
  isTakenId,
  PostgresDeadlineError,
  thrownByDriver,
} from '../../src/stores/lucid/postgres/error_class.ts'

function withCode(code: string, more: object = {}): Error {
  return Object.assign(new Error('no'), { code, ...more })
}

test.group('PostgreSQL error classes', () => {
  const codes = {
    data: ['23505', '23502', '22001', '22P02', '22021', '54000', 'P0001'],
    conflict: ['40001', '40P01'],
    lock: ['55P03'],
    connection: [
      ...['57P01', '57P02', '57P03', '08006', '08P01', '25P03', '25006', '53300', '26000', '0A000'],
      ...['ECONNRESET', 'ECONNREFUSED', 'EPIPE', 'ETIMEDOUT', 'ENOTFOUND', 'EAI_AGAIN', 'ENOENT'],
    ],
    other: ['42P01', '53100', '57014', '28P01', '3D000', 'XX000', '55006', '55000'],
  } as const
  for (const [kind, of] of Object.entries(codes)) {
    test(`${kind}: ${of.join(', ')}`, ({ assert }) => {
      for (const code of of) assert.equal(errorClass(withCode(code)), kind, code)
    })
  }

  test('what the driver says without a code', ({ assert }) => {
    const lost = [
      'Connection terminated',
      'Connection terminated unexpectedly',
      'Client has encountered a connection error and is not queryable',
      'Client was closed and is not queryable',
      'timeout expired',
    ]
    for (const message of lost) assert.equal(errorClass(new Error(message)), 'connection', message)
    assert.equal(errorClass(new PostgresDeadlineError(1)), 'connection')
    assert.equal(errorClass(new Error('something else')), 'other')
    assert.equal(errorClass('no error at all'), 'other')
  })

  test('a value that the driver cannot send is about the data; the same error of our own code is not', ({
    assert,
  }) => {
    for (const error of [new RangeError('Invalid string length'), new TypeError('no text')]) {
      assert.equal(errorClass(thrownByDriver(error)), 'data')
      assert.equal(errorClass(error), 'other')
    }
    const other = withCode('40001')
    assert.equal(thrownByDriver(other), other)
  })

  test('the id of a run that is taken is told from other unique values', ({ assert }) => {
    assert.isTrue(isTakenId(withCode('23505', { constraint: 'durable_runs_pkey' })))
    assert.isFalse(isTakenId(withCode('23505', { constraint: 'durable_history_pkey' })))
    assert.isFalse(isTakenId(withCode('23503', { constraint: 'durable_runs_pkey' })))
    assert.isFalse(isTakenId('no error at all'))
  })
})

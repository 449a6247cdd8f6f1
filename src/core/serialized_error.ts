import { E_PAYLOAD_TOO_LARGE, E_UNREADABLE_PAYLOAD, RECORDED_AS, RecordedError } from '../errors.ts'
import { decode, DEFAULT_MAX_PAYLOAD_BYTES, encode } from './payload.ts'

/** A failure as it is recorded. The same fields on every road to failure. */
export interface SerializedError {
  /**
   * Name of the thrown error; it stands in for a code that the error has not, and is as short. `NonError` for a thrown
   * value that was no error.
   */
  name: string
  message: string
  /** What routes and guards match. Recorded in a column of its own too: at most 200 characters, none of control. */
  code?: string
  /** Any value that can be stored, or a text that says why it could not be. */
  details?: unknown
  stack?: string
  /** False = no further attempt is made. */
  retryable?: boolean
  /** The child run whose failure this is. */
  runId?: string
  /** At most 5 deep. */
  cause?: SerializedError
}

/** Details of `run_id_taken`, where it is the failure of no child: the run that has the id. */
export interface TakenId {
  runId: string
}

const MAX_CAUSES = 5
/** Longer codes are recorded shortened. */
export const MAX_CODE_LENGTH = 200
const MAX_TEXT_LENGTH = 32_768
const MAX_ERRORS_LISTED = 20
const MAX_SHORT_LENGTH = 1000
/** Room for the shortest form of every failure. */
const MIN_ERROR_BYTES = 16_384

function attempt<T>(action: () => T): T | undefined {
  try {
    return action()
  } catch {
    return undefined
  }
}

function read(thrown: object, key: string): unknown {
  return attempt(() => (key in thrown ? Reflect.get(thrown, key) : undefined))
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? shortened(value, MAX_TEXT_LENGTH) : undefined
}

function shortened(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length)}... (${text.length} characters)`
}

function codeOf(value: unknown): string | undefined {
  if (typeof value === 'number') return String(value)
  if (typeof value !== 'string' || value === '') return undefined
  return value
    .slice(0, MAX_CODE_LENGTH)
    .toWellFormed()
    .replaceAll(/\p{Cc}/gu, '\ufffd')
}

/** What a value that cannot be shown otherwise is called: never throws. */
function described(value: unknown): string {
  if (typeof value === 'string') return value
  if (typeof value === 'function') return 'a function'
  if (typeof value === 'object' && value !== null) {
    return attempt(() => Object.prototype.toString.call(value)) ?? 'an object that cannot be read'
  }
  return attempt(() => String(value)) ?? typeof value
}

/** The details as the store will give them back, or a text in their place. */
function storable(details: unknown): unknown {
  try {
    // Half of the limit, so that the rest of the failure has room.
    return decode(encode(details, { label: 'details', maxBytes: DEFAULT_MAX_PAYLOAD_BYTES / 2 }))
  } catch (error) {
    const reason = error instanceof Error ? attempt(() => error.message) : undefined
    return `Not recorded: ${reason ?? 'they cannot be read'}`
  }
}

function isError(thrown: unknown): thrown is Error {
  return attempt(() => thrown instanceof Error) ?? false
}

function listed(errors: unknown): unknown {
  if (!Array.isArray(errors)) return undefined
  return errors.slice(0, MAX_ERRORS_LISTED).map((error) => {
    const { name, message, code } = serialize(error, 0)
    return code === undefined ? { name, message } : { name, message, code }
  })
}

function detailsOf(error: Error): unknown {
  const details = read(error, 'details')
  if (details !== undefined) return details
  if (read(error, 'code') === 'E_VALIDATION_ERROR') return read(error, 'messages')
  return attempt(() => listed(read(error, 'errors')))
}

function retryableOf(error: object, code: string | undefined): boolean | undefined {
  if (code === 'E_VALIDATION_ERROR' || (code !== undefined && RECORDED_AS.has(code))) return false
  const own = read(error, 'retryable')
  return typeof own === 'boolean' ? own : undefined
}

function serializeNonError(thrown: unknown): SerializedError {
  const result: SerializedError = {
    name: 'NonError',
    message: shortened(described(thrown), MAX_TEXT_LENGTH),
  }
  if (typeof thrown === 'object' && thrown !== null) {
    result.message = textOf(read(thrown, 'message')) ?? result.message
    const code = codeOf(read(thrown, 'code'))
    if (code !== undefined) result.code = code
    const retryable = retryableOf(thrown, code)
    if (retryable !== undefined) result.retryable = retryable
  }
  result.details = storable(thrown)
  return result
}

/** The child whose failure it is. Where its id was taken there is none: the run that the error names is another one. */
function childOf({ code, details, runId }: RecordedError): string | undefined {
  const isTaken = code === 'run_id_taken' && (details as TakenId | undefined)?.runId === runId
  return isTaken ? undefined : runId
}

function serialize(thrown: unknown, causesLeft: number): SerializedError {
  if (!isError(thrown)) return serializeNonError(thrown)

  const code = codeOf(read(thrown, 'code'))
  const result: SerializedError = {
    name: codeOf(read(thrown, 'name')) ?? 'Error',
    message: textOf(read(thrown, 'message')) ?? '',
  }
  if (code !== undefined) result.code = RECORDED_AS.get(code) ?? code

  const details = detailsOf(thrown)
  if (details !== undefined) result.details = storable(details)

  const stack = textOf(read(thrown, 'stack'))
  if (stack !== undefined) result.stack = stack

  const retryable = retryableOf(thrown, code)
  if (retryable !== undefined) result.retryable = retryable

  const runId = thrown instanceof RecordedError ? childOf(thrown) : undefined
  if (runId !== undefined) result.runId = runId

  const cause = read(thrown, 'cause')
  if (cause !== undefined && causesLeft > 0) result.cause = serialize(cause, causesLeft - 1)
  return result
}

/**
 * The recorded form of whatever was thrown. Never throws: what cannot be read is left out, details that cannot be
 * stored become a text that says why, and a value that is not an error becomes a `NonError` with the value as details.
 *
 * - `code` is kept when it is a text or a number; the package's own `E_` codes become their recorded ones.
 * - `retryable` is kept when the error has it, and is false for what no further attempt changes: AdonisJS's
 *   `E_VALIDATION_ERROR`, whose `messages` become the details, and values that cannot be stored.
 * - The errors of an `AggregateError` become the details, by name, message and code.
 */
export function serializeError(thrown: unknown): SerializedError {
  return serialize(thrown, MAX_CAUSES)
}

/** Ever shorter forms of one failure: the first that fits is stored. */
function* forms(error: SerializedError): Generator<SerializedError> {
  yield error
  const short = { ...error }
  delete short.cause
  yield short
  if ('details' in short) short.details = 'Not recorded: the failure was too large'
  yield short
  delete short.stack
  short.message = shortened(short.message, MAX_SHORT_LENGTH)
  yield short
}

/**
 * The text in which a failure is stored. A failure that is larger than `maxBytes` (default 1 MiB, at least 16 KiB)
 * loses its cause, then its details, then its stack, and is recorded all the same.
 */
export function encodeError(error: SerializedError, options: { maxBytes?: number } = {}): string {
  const maxBytes = Math.max(MIN_ERROR_BYTES, options.maxBytes ?? DEFAULT_MAX_PAYLOAD_BYTES)
  let last: unknown
  for (const form of forms(error)) {
    try {
      return encode(form, { label: 'error', maxBytes })
    } catch (failure) {
      if (!(failure instanceof E_PAYLOAD_TOO_LARGE)) throw failure
      last = failure
    }
  }
  throw last
}

function isSerializedError(value: unknown): value is SerializedError {
  if (typeof value !== 'object' || value === null) return false
  return (
    typeof Reflect.get(value, 'name') === 'string' &&
    typeof Reflect.get(value, 'message') === 'string'
  )
}

/** The failure that `encodeError` was given. Throws `E_UNREADABLE_PAYLOAD` for any other text. */
export function decodeError(text: string): SerializedError {
  const value = decode(text)
  if (!isSerializedError(value)) throw new E_UNREADABLE_PAYLOAD(['it is not a failure'])
  return value
}

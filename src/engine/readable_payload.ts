import { decode } from '../core/payload.ts'
import { decodeError, type SerializedError } from '../core/serialized_error.ts'
import { E_UNREADABLE_PAYLOAD } from '../errors.ts'

/** The stored value; the stored text where it cannot be read, so that its run can be looked at all the same. */
export function readableValue(text: string): unknown {
  return readable(
    () => decode(text),
    () => text
  )
}

/** The recorded failure; where it cannot be read, one that says so, with the stored text as its details. */
export function readableError(text: string): SerializedError {
  return readable(
    () => decodeError(text),
    ({ name, message }) => ({ name, message, code: 'E_UNREADABLE_PAYLOAD', details: text })
  )
}

function readable<T>(read: () => T, orElse: (error: Error) => T): T {
  try {
    return read()
  } catch (error) {
    if (error instanceof E_UNREADABLE_PAYLOAD) return orElse(error)
    throw error
  }
}

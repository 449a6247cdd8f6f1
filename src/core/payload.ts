import type { SuperJSONResult } from 'superjson'
import { E_PAYLOAD_TOO_LARGE, E_UNREADABLE_PAYLOAD } from '../errors.ts'
import { json } from './payload_json.ts'
import { plainText } from './payload_plain.ts'
import { snapshotOf, type SnapshotOptions } from './payload_snapshot.ts'

/** 1 MiB. */
export const DEFAULT_MAX_PAYLOAD_BYTES = 1_048_576

/** The stored form of a value: `v` is readable by every language, `m` says what JSON could not. */
interface PlainPayload {
  v: unknown
  m?: SuperJSONResult['meta']
}

export interface EncodeOptions {
  /** What the value is, and the start of the path in errors: `input`, `output`. Default `value`. */
  label?: string
  /** Whose it is, for errors, behind the path: `step "charge"`. */
  of?: string | undefined
  /** Limit for the text in bytes of UTF-8. Default 1 MiB. */
  maxBytes?: number
}

function measured(text: string, what: string, limit: number): string {
  if (text.length * 3 <= limit) return text
  const size = Buffer.byteLength(text)
  if (size > limit) throw new E_PAYLOAD_TOO_LARGE({ what, size, limit })
  return text
}

function encodeRich(value: unknown, options: SnapshotOptions): string {
  const { json: v, meta } = json.serialize(snapshotOf(value, options))
  const payload: PlainPayload = { v }
  // The snapshot is a tree: what superjson finds equal are equal numbers.
  if (meta?.values !== undefined) payload.m = { values: meta.values, v: meta.v ?? 0 }
  return JSON.stringify(payload)
}

/**
 * The text in which a value is stored: `{"v":...}`, with an `"m"` beside it where JSON lacks something. Decoding it
 * gives a value that is deeply equal, types included:
 *
 * - JSON's own values, `undefined`, `NaN`, `Infinity`, `-0`, bigints, `Date`, `RegExp`, `URL`, `Map` (with keys that
 *   are not objects), `Set`, typed arrays, `Buffer`, objects without a prototype, and errors of the language's own
 *   classes and of those that a body catches, with all their properties, `cause` included;
 * - of objects, the enumerable properties; of a getter, what it gave;
 * - a value is a tree: an object that occurs twice becomes two equal ones.
 *
 * Everything else (functions, symbols, promises, cycles, sparse arrays, invalid dates, instances of classes, Luxon
 * values and Lucid models among them) is refused with `E_UNSERIALIZABLE`, which names its path and what to pass
 * instead. A text above `maxBytes` is `E_PAYLOAD_TOO_LARGE`. The text contains no NUL and no lone surrogate.
 */
export function encode(value: unknown, options: EncodeOptions = {}): string {
  const { label = 'value', of, maxBytes = DEFAULT_MAX_PAYLOAD_BYTES } = options
  const plain = plainText(value, maxBytes)
  const text = plain === undefined ? encodeRich(value, { label, of, maxBytes }) : `{"v":${plain}}`
  return measured(text, of === undefined ? label : `${label} of ${of}`, maxBytes)
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

function isMeta(value: unknown): value is NonNullable<PlainPayload['m']> {
  return isRecord(value) && 'values' in value
}

/** The value that `encode` was given. Throws `E_UNREADABLE_PAYLOAD` for a text that `encode` did not make. */
export function decode(text: string): unknown {
  let payload: unknown
  try {
    payload = JSON.parse(text)
  } catch (cause) {
    throw new E_UNREADABLE_PAYLOAD(['it is not JSON'], { cause })
  }
  if (!isRecord(payload) || !('v' in payload)) {
    throw new E_UNREADABLE_PAYLOAD([
      isRecord(payload) && 'c' in payload ? 'it is encoded' : 'it has no "v"',
    ])
  }
  if (payload.m === undefined) return payload.v
  if (!isMeta(payload.m)) throw new E_UNREADABLE_PAYLOAD(['its "m" is malformed'])
  try {
    return json.deserialize(
      { json: payload.v as SuperJSONResult['json'], meta: payload.m },
      { inPlace: true }
    )
  } catch (cause) {
    throw new E_UNREADABLE_PAYLOAD(['its "m" names something unknown'], { cause })
  }
}

import { E_PAYLOAD_TOO_LARGE, E_UNSERIALIZABLE } from '../errors.ts'
import {
  ERRORS,
  StandInBytes,
  StandInError,
  StandInObject,
  TYPED_ARRAYS,
  type BytesType,
  type ErrorType,
} from './payload_json.ts'
import {
  CYCLE_FIX,
  HOLE_FIX,
  KEY_OBJECT_FIX,
  PLAIN_FIX,
  refusalOf,
  TOO_DEEP_FIX,
  type Refusal,
} from './payload_refusal.ts'

/** How deep values may be nested. */
export const MAX_DEPTH = 500

/** Keys of plain objects that superjson refuses. */
const RESERVED_KEYS: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype'])
const ESCAPED = /["\\\p{Cc}\p{Cs}]/u
const IDENTIFIER = /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u

const ERROR_TYPES: ReadonlyMap<unknown, ErrorType> = prototypes(ERRORS)
const BYTES_TYPES: ReadonlyMap<unknown, BytesType> = prototypes({ ...TYPED_ARRAYS, Buffer })

function prototypes<Name extends string>(
  classes: Record<Name, { prototype: object }>
): Map<unknown, Name> {
  const names = Object.keys(classes) as Name[]
  return new Map(names.map((name) => [classes[name].prototype, name]))
}

/**
 * Whether JSON escapes something in this key. No key of a stored text may contain an escape: once V8 13.6 has read
 * an object with the keys `a` and `\`, its JSON.parse takes `{"a":1,"\n":2}` for another one of these.
 */
export function needsEscape(key: string): boolean {
  return ESCAPED.test(key)
}

/** Whether a key may stand in a text that superjson annotates: its annotations escape dots. */
function isSimple(key: string): boolean {
  return !RESERVED_KEYS.has(key) && !key.includes('.') && !needsEscape(key)
}

/** What a value is called in errors, and how large its text may become. */
export interface SnapshotOptions {
  /** What the value is, and the start of its paths. */
  label: string
  /** Whose it is, behind the path. */
  of?: string | undefined
  maxBytes: number
}

/**
 * Copies a value into one that superjson keeps exactly, reading each property once, or refuses it. What superjson
 * does not keep by itself is replaced by stand-ins. The copy is a tree: an object that occurs twice is copied twice.
 */
class Snapshot {
  readonly #label: string
  readonly #of: string
  readonly #maxBytes: number
  readonly #path: string[] = []
  readonly #above = new Set<object>()
  #nodes = 0

  constructor({ label, of, maxBytes }: SnapshotOptions) {
    this.#label = label
    this.#of = of === undefined ? '' : ` of ${of}`
    this.#maxBytes = maxBytes
  }

  #refuse({ found, fix }: Refusal, cause?: unknown): never {
    const path = this.#label + this.#path.join('')
    throw new E_UNSERIALIZABLE({ path, of: this.#of, found, fix, cause })
  }

  #at<T>(segment: string, copy: () => T): T {
    this.#path.push(segment)
    const result = copy()
    this.#path.pop()
    return result
  }

  #property(key: string, read: () => unknown): unknown {
    const segment = IDENTIFIER.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`
    return this.#at(segment, () => {
      let value: unknown
      try {
        value = read()
      } catch (cause) {
        this.#refuse(
          { found: 'a property that throws when it is read', fix: 'Pass a copy without it' },
          cause
        )
      }
      return this.copy(value)
    })
  }

  copy(value: unknown): unknown {
    // Each value is at least one character and a separator, so a tree without end stops here.
    if (++this.#nodes * 2 > this.#maxBytes + 16) {
      throw new E_PAYLOAD_TOO_LARGE({
        what: this.#label + this.#of,
        size: this.#nodes * 2,
        limit: this.#maxBytes,
        atLeast: true,
      })
    }
    if (typeof value === 'function' || typeof value === 'symbol') this.#refuse(refusalOf(value))
    if (typeof value !== 'object' || value === null) return value
    if (this.#above.has(value))
      this.#refuse({ found: 'an object that contains itself', fix: CYCLE_FIX })
    if (this.#path.length >= MAX_DEPTH) {
      this.#refuse({ found: `nested more than ${MAX_DEPTH} levels deep`, fix: TOO_DEEP_FIX })
    }
    this.#above.add(value)
    try {
      return this.#copyObject(value)
    } catch (cause) {
      if (cause instanceof E_UNSERIALIZABLE || cause instanceof E_PAYLOAD_TOO_LARGE) throw cause
      return this.#refuse({ found: 'an object that throws when it is read', fix: PLAIN_FIX }, cause)
    } finally {
      this.#above.delete(value)
    }
  }

  #copyObject(value: object): unknown {
    const prototype: unknown = Object.getPrototypeOf(value)
    if (prototype === Object.prototype) return this.#copyPlain(value, true)
    if (prototype === null) return this.#copyPlain(value, false)
    if (Array.isArray(value) && prototype === Array.prototype) return this.#copyArray(value)

    const bytes = BYTES_TYPES.get(prototype)
    if (bytes !== undefined && ArrayBuffer.isView(value)) return new StandInBytes(bytes, value)

    const error = ERROR_TYPES.get(prototype)
    if (error !== undefined && value instanceof Error) return this.#copyError(value, error)

    if (prototype === Date.prototype) return this.#checkDate(value)
    if (value instanceof RegExp && prototype === RegExp.prototype) return this.#checkRegExp(value)
    if (value instanceof URL && prototype === URL.prototype) return value
    if (value instanceof Map && prototype === Map.prototype) return this.#copyMap(value)
    if (value instanceof Set && prototype === Set.prototype) return this.#copySet(value)
    return this.#refuse(refusalOf(value))
  }

  #refuseExtras(value: object, found: string, expected: readonly string[] = []): void {
    const extra = Reflect.ownKeys(value).find(
      (key) => typeof key === 'symbol' || !expected.includes(key)
    )
    if (extra === undefined) return
    this.#refuse({
      found: `${found} with a property of its own (${String(extra)})`,
      fix: `Pass it and the property side by side in a plain object`,
    })
  }

  #refuseSymbols(value: object): void {
    const [symbol] = Object.getOwnPropertySymbols(value)
    if (symbol === undefined) return
    this.#refuse({
      found: `an object with the symbol ${String(symbol)} as a key`,
      fix: 'Use a text as key',
    })
  }

  #entries(value: object, keys: readonly string[]): [string, unknown][] {
    return keys.map((key) => [key, this.#property(key, () => Reflect.get(value, key))])
  }

  #objectOf(entries: readonly (readonly [string, unknown])[], hasPrototype: boolean): unknown {
    const simple = hasPrototype && entries.every(([key]) => isSimple(key))
    return simple ? Object.fromEntries(entries) : new StandInObject(entries, hasPrototype)
  }

  #copyPlain(value: object, hasPrototype: boolean): unknown {
    this.#refuseSymbols(value)
    return this.#objectOf(this.#entries(value, Object.keys(value)), hasPrototype)
  }

  #copyArray(value: readonly unknown[]): unknown[] {
    this.#refuseSymbols(value)
    const copied: unknown[] = []
    for (let index = 0; index < value.length; index++) {
      this.#at(`[${index}]`, () => {
        if (!Object.hasOwn(value, index))
          this.#refuse({ found: 'a hole in a sparse array', fix: HOLE_FIX })
      })
      copied.push(this.#at(`[${index}]`, () => this.copy(value[index])))
    }
    const extra = Object.keys(value)[copied.length]
    if (extra !== undefined) {
      this.#refuse({
        found: `an array with a property of its own (${extra})`,
        fix: 'Pass a plain array: Array.from(it)',
      })
    }
    return copied
  }

  #copyMap(value: Map<unknown, unknown>): Map<unknown, unknown> {
    this.#refuseExtras(value, 'a Map')
    const copied = new Map<unknown, unknown>()
    for (const [key, item] of Map.prototype.entries.call(value)) {
      const shown =
        typeof key === 'string'
          ? JSON.stringify(key)
          : String(typeof key === 'object' ? copied.size : key)
      this.#at(`.get(${shown})`, () => {
        if (typeof key === 'object' && key !== null) {
          this.#refuse({ found: 'kept under a key that is an object', fix: KEY_OBJECT_FIX })
        }
        copied.set(this.copy(key), this.copy(item))
      })
    }
    return copied
  }

  #copySet(value: Set<unknown>): Set<unknown> {
    this.#refuseExtras(value, 'a Set')
    const copied = new Set<unknown>()
    for (const item of Set.prototype.values.call(value)) {
      this.#at(`.values()[${copied.size}]`, () => copied.add(this.copy(item)))
    }
    return copied
  }

  #copyError(value: Error, type: ErrorType): StandInError {
    const own = this.#copyPlain(value, true)
    const enumerable = new Set(Object.keys(value))
    const names = Object.getOwnPropertyNames(value).filter((key) => !enumerable.has(key))
    return new StandInError({
      type,
      own,
      hidden: this.#objectOf(this.#entries(value, names), true),
    })
  }

  #checkDate(value: object): object {
    this.#refuseExtras(value, 'a Date')
    let ms = Number.NaN
    try {
      ms = Number(value)
    } catch (cause) {
      this.#refuse(
        { found: 'an object that only looks like a Date', fix: 'Pass a Date, or a text' },
        cause
      )
    }
    if (Number.isNaN(ms)) {
      this.#refuse({ found: 'an invalid Date', fix: 'Check it where it is made, or pass null' })
    }
    return value
  }

  #checkRegExp(value: RegExp): RegExp {
    this.#refuseExtras(value, 'a regular expression', ['lastIndex'])
    if (value.lastIndex !== 0) {
      this.#refuse({
        found: 'a regular expression in the middle of a search',
        fix: 'Set its lastIndex to 0',
      })
    }
    return value
  }
}

/**
 * A copy of `value` for superjson. Throws `E_UNSERIALIZABLE` with the path of what cannot be kept exactly, or
 * `E_PAYLOAD_TOO_LARGE` when it is certain that the text will be longer than `maxBytes`.
 */
export function snapshotOf(value: unknown, options: SnapshotOptions): unknown {
  return new Snapshot(options).copy(value)
}

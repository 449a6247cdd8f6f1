import { SuperJSON } from 'superjson'
import { ChildError, RecordedError, SignalTimeoutError, StepError } from '../errors.ts'

/** Typed arrays that are kept, by the name that is stored. */
export const TYPED_ARRAYS = {
  Int8Array,
  Uint8Array,
  Uint8ClampedArray,
  Int16Array,
  Uint16Array,
  Int32Array,
  Uint32Array,
  BigInt64Array,
  BigUint64Array,
  Float32Array,
  Float64Array,
} as const
export type BytesType = keyof typeof TYPED_ARRAYS | 'Buffer'

/** Classes of errors that are kept, by the name that is stored: those of the language, and what a body catches. */
export const ERRORS = {
  Error,
  AggregateError,
  EvalError,
  RangeError,
  ReferenceError,
  SyntaxError,
  TypeError,
  URIError,
  StepError,
  ChildError,
  SignalTimeoutError,
  RecordedError,
} as const
export type ErrorType = keyof typeof ERRORS

/** Stands for an object whose keys must not be keys of the text. A Map, so that its values are walked. */
export class StandInObject extends Map<string, unknown> {
  /** False for an object without a prototype. */
  readonly hasPrototype: boolean

  constructor(entries: readonly (readonly [string, unknown])[], hasPrototype: boolean) {
    super(entries)
    this.hasPrototype = hasPrototype
  }
}

/** Stands for a typed array or a Buffer. */
export class StandInBytes {
  readonly type: BytesType
  readonly base64: string

  constructor(type: BytesType, view: ArrayBufferView) {
    this.type = type
    this.base64 = Buffer.from(view.buffer, view.byteOffset, view.byteLength).toString('base64')
  }
}

/** Own properties of an error: those that are hidden (`message`, `stack`, ...), and in `own` the enumerable ones. */
export interface ErrorFields {
  type: ErrorType
  hidden: unknown
  own: unknown
}

/** Stands for an error. It is one itself, so that its fields are walked. */
export class StandInError extends Error {
  readonly fields: ErrorFields

  constructor(fields: ErrorFields) {
    super()
    this.fields = fields
  }
}

function bytesOf({ type, base64 }: { type: BytesType; base64: string }): ArrayBufferView {
  const bytes = Buffer.from(base64, 'base64')
  if (type === 'Buffer') return bytes
  return new TYPED_ARRAYS[type](new Uint8Array(bytes).buffer)
}

function errorOf({ type, hidden, own }: { type: ErrorType; hidden: object; own: object }): Error {
  const error = Object.setPrototypeOf(new Error(), ERRORS[type].prototype) as Error
  for (const key of Reflect.ownKeys(error)) Reflect.deleteProperty(error, key)
  for (const [key, value] of Object.entries(hidden)) {
    Object.defineProperty(error, key, { value, writable: true, configurable: true })
  }
  return Object.defineProperties(error, Object.getOwnPropertyDescriptors(own))
}

/** The serialiser for what JSON lacks: superjson, and what it does not keep exactly by itself. */
export const json = new SuperJSON()

json.registerCustom<StandInObject, any>(
  {
    isApplicable: (value): value is StandInObject =>
      value instanceof StandInObject && value.hasPrototype,
    serialize: (entries) => [...entries],
    deserialize: Object.fromEntries as (stored: unknown) => never,
  },
  'object'
)
json.registerCustom<StandInObject, any>(
  {
    isApplicable: (value): value is StandInObject =>
      value instanceof StandInObject && !value.hasPrototype,
    serialize: (entries) => [...entries],
    deserialize: (entries) =>
      Object.create(null, Object.getOwnPropertyDescriptors(Object.fromEntries(entries))),
  },
  'bare-object'
)
json.registerCustom<StandInBytes, any>(
  {
    isApplicable: (value): value is StandInBytes => value instanceof StandInBytes,
    serialize: ({ type, base64 }) => ({ type, base64 }),
    deserialize: bytesOf as (stored: unknown) => never,
  },
  'bytes'
)
json.registerCustom<StandInError, any>(
  {
    isApplicable: (value): value is StandInError => value instanceof StandInError,
    serialize: ({ fields }) => ({ ...fields }),
    deserialize: errorOf as (stored: unknown) => never,
  },
  'error'
)

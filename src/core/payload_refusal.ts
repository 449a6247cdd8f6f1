/** Why a value cannot be stored, and what to pass instead: two parts of a sentence. */
export interface Refusal {
  found: string
  fix: string
}

function has(value: object, key: string): boolean {
  return key in value
}

function isTrue(value: object, key: string): boolean {
  return has(value, key) && Reflect.get(value, key) === true
}

function isCallable(value: object, key: string): boolean {
  return has(value, key) && typeof Reflect.get(value, key) === 'function'
}

/** Name of the class an object was made by, or null for one that has none. */
function classNameOf(value: object): string | null {
  const prototype: unknown = Object.getPrototypeOf(value)
  if (typeof prototype !== 'object' || prototype === null) return null
  const maker: unknown = Reflect.get(prototype, 'constructor')
  return typeof maker === 'function' && maker.name !== '' ? maker.name : null
}

function refusalOfInstance(value: object): Refusal {
  const name = classNameOf(value)
  const instance = name === null ? 'an instance of a class' : `an instance of ${name}`
  if (isTrue(value, 'isLuxonDateTime')) {
    return { found: 'a Luxon DateTime', fix: 'Pass .toISO(), and read it with DateTime.fromISO()' }
  }
  if (isTrue(value, 'isLuxonDuration')) {
    return { found: 'a Luxon Duration', fix: 'Pass .toISO(), and read it with Duration.fromISO()' }
  }
  if (isTrue(value, 'isLuxonInterval')) {
    return { found: 'a Luxon Interval', fix: 'Pass .toISO(), and read it with Interval.fromISO()' }
  }
  if (has(value, '$attributes') && isCallable(value, 'serialize')) {
    return {
      found: `a Lucid model (${name ?? 'of an unnamed class'})`,
      fix: 'Pass its id and load it where it is needed, or its serialised form: .serialize()',
    }
  }
  if (isCallable(value, 'then')) {
    return { found: 'a promise', fix: 'Await it first' }
  }
  if (value instanceof Error) {
    return {
      found: `${instance}, an error`,
      fix: 'Pass what is needed of it: { name, message, code }',
    }
  }
  if (Array.isArray(value)) {
    return { found: `${instance}, an array`, fix: 'Pass a plain array: Array.from(it)' }
  }
  if (isCallable(value, 'toJSON')) {
    return {
      found: instance,
      fix: 'Only its data can be stored: pass .toJSON(), or a plain object',
    }
  }
  return {
    found: instance,
    fix: 'Only its data can be stored: pass a plain object with the fields that are needed',
  }
}

/** What to say of an object, a function or a symbol that is none of the values that can be stored. */
export function refusalOf(value: unknown): Refusal {
  if (typeof value === 'function') {
    return {
      found: 'a function',
      fix: 'Pass the data it needs, and call it where the data arrives',
    }
  }
  if (typeof value === 'symbol') {
    return { found: 'a symbol', fix: 'Pass a string' }
  }
  return refusalOfInstance(Object(value))
}

export const PLAIN_FIX = 'Pass a plain object with the fields that are needed'
export const CYCLE_FIX = 'Pass ids in place of the object that leads back to itself'
export const HOLE_FIX = 'Fill the hole, with null or undefined'
export const KEY_OBJECT_FIX =
  'Lookups in the stored Map would not find it: use a text or a number as key'
export const TOO_DEEP_FIX = 'Store it flat, such as a list of nodes with the ids of their parents'

import { MAX_DEPTH, needsEscape } from './payload_snapshot.ts'

/** How many values may still be looked at: a small object can unfold into a tree without end. */
interface Budget {
  left: number
}

type Readable = Readonly<Record<string, unknown>>

function isPlainNumber(value: number): boolean {
  return Number.isFinite(value) && (value !== 0 || 1 / value > 0)
}

function isPlainArray(value: readonly unknown[], depth: number, budget: Budget): boolean {
  for (const element of value) {
    if (!isPlainValue(element, depth, budget)) return false
  }
  return Object.keys(value).length === value.length
}

function isPlainObject(value: Readable, depth: number, budget: Budget): boolean {
  for (const key of Object.keys(value)) {
    if (!isPlainValue(value[key], depth, budget)) return false
  }
  return true
}

function isPlainValue(value: unknown, depth: number, budget: Budget): boolean {
  if (--budget.left < 0) return false
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return true
    case 'number':
      return isPlainNumber(value)
    case 'object': {
      if (value === null) return true
      if (depth === 0 || Object.getOwnPropertySymbols(value).length > 0) return false
      // JSON would call it, also where no key shows it.
      if ('toJSON' in value) return false
      const prototype: unknown = Object.getPrototypeOf(value)
      if (prototype === Object.prototype) return isPlainObject(value as Readable, depth - 1, budget)
      return (
        prototype === Array.prototype &&
        Array.isArray(value) &&
        isPlainArray(value, depth - 1, budget)
      )
    }
    case 'undefined':
    case 'bigint':
    case 'function':
    case 'symbol':
      return false
  }
}

function hasEscapedKey(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (Array.isArray(value)) return value.some(hasEscapedKey)
  return Object.entries(value).some(([key, item]) => needsEscape(key) || hasEscapedKey(item))
}

/**
 * The JSON of `value` if JSON keeps it exactly, else undefined: also for what is nested too deep, throws when it is
 * read, has keys that need an escape, or consists of more than `maxValues` values.
 */
export function plainText(value: unknown, maxValues: number): string | undefined {
  try {
    if (!isPlainValue(value, MAX_DEPTH, { left: maxValues })) return undefined
    const text = JSON.stringify(value)
    // Most texts contain no escape at all: their keys need no second look.
    return text.includes('\\') && hasEscapedKey(value) ? undefined : text
  } catch {
    return undefined
  }
}

import { MAX_DEPTH } from './payload_snapshot.ts'

function isPlainArray(value: readonly unknown[], depth: number): boolean {
  for (const item of value) {
    if (!isPlainValue(item, depth)) return false
  }
  return (
    Object.keys(value).length === value.length && Object.getOwnPropertySymbols(value).length === 0
  )
}

function isPlainValue(value: unknown, depth: number): boolean {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return true
    case 'number':
      return Number.isFinite(value) && (value !== 0 || 1 / value > 0)
    case 'object': {
      if (value === null) return true
      if (depth === 0) return false
      const prototype: unknown = Object.getPrototypeOf(value)
      if (prototype === Array.prototype && Array.isArray(value))
        return isPlainArray(value, depth - 1)
      if (prototype !== Object.prototype || Object.getOwnPropertySymbols(value).length > 0)
        return false
      for (const key of Object.keys(value)) {
        if (!isPlainValue(Reflect.get(value, key), depth - 1)) return false
      }
      return true
    }
    case 'undefined':
    case 'bigint':
    case 'function':
    case 'symbol':
      return false
  }
}

/**
 * The JSON of `value` if JSON keeps it exactly, else undefined: also for what is nested too deep or throws when it is
 * read.
 */
export function plainText(value: unknown): string | undefined {
  try {
    return isPlainValue(value, MAX_DEPTH) ? JSON.stringify(value) : undefined
  } catch {
    return undefined
  }
}

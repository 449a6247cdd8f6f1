import { E_INVALID_OPTION, E_UNKNOWN_OPTION } from '../errors.ts'
import { nearestName } from './nearest_name.ts'

/**
 * The first key of `given` that nobody reads, with what was probably meant, or what there is; null = all are known.
 *
 * @param prefix what stands before the names in the hint
 */
export function unknownKey(
  given: object,
  known: readonly string[],
  prefix = ''
): { key: string; hint: string } | null {
  const key = Object.keys(given).find((each) => !known.includes(each))
  if (key === undefined) return null
  const nearest = nearestName(key, known)
  return {
    key,
    hint: nearest ? `Did you mean "${prefix}${nearest}"?` : `Known are ${known.join(', ')}`,
  }
}

/** Every key that an options type has, so that none is forgotten where they are listed. */
export type KeysOf<Options> = Record<keyof Options & string, true>

/**
 * Throws E_UNKNOWN_OPTION for an option that nobody reads: the types refuse it only where it is written down at once; and
 * E_INVALID_OPTION for what is no plain object.
 */
export function checkOptions<Options extends object>(
  of: string,
  given: Options,
  known: Record<keyof NoInfer<Options> & string, unknown>
): void {
  const names = Object.keys(known)
  checkIsOptions(of, given, names)
  const unknown = unknownKey(given, names)
  if (unknown) throw new E_UNKNOWN_OPTION([unknown.key, of, unknown.hint])
}

/** Throws E_INVALID_OPTION, with the names of the options, for what is no plain object: a text, a list, a transaction. */
export function checkIsOptions(of: string, given: unknown, names: readonly string[]): void {
  if (isPlainObject(given)) return
  const expected = `an object: { ${names.map((name) => `${name}?`).join(', ')} }`
  throw new E_INVALID_OPTION([`options of ${of}`, shown(given), expected])
}

/**
 * Throws E_INVALID_OPTION unless the option was left out or its value is one that it takes.
 *
 * @param of the call or declaration that takes the option, such as `ctx.all()`
 * @param expected what it takes, in words
 */
export function checkOption(
  of: string,
  option: { name: string; value: unknown; expected: string; isValid: boolean }
): void {
  const { name, value, expected, isValid } = option
  if (value === undefined || isValid) return
  throw new E_INVALID_OPTION([`option "${name}" of ${of}`, shown(value), expected])
}

function isPlainObject(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || Object.getPrototypeOf(prototype) === null
}

/** What was given instead of options, such as `"order-7"`, `a list` or `an instance of Transaction`. */
function shown(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value)
  if (typeof value === 'function') return `the function ${value.name || 'without a name'}`
  if (typeof value !== 'object' || value === null) return String(value)
  return Array.isArray(value) ? 'a list' : `an instance of ${value.constructor.name}`
}

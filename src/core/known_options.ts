import { E_UNKNOWN_OPTION } from '../errors.ts'
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

/** Throws E_UNKNOWN_OPTION for an option that nobody reads: the types refuse it only where it is written down at once. */
export function checkOptions<Options extends object>(
  of: string,
  given: Options,
  known: Record<keyof NoInfer<Options> & string, unknown>
): void {
  const unknown = unknownKey(given, Object.keys(known))
  if (unknown) throw new E_UNKNOWN_OPTION([unknown.key, of, unknown.hint])
}

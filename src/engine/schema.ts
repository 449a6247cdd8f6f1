import type { StandardSchemaV1 } from '@standard-schema/spec'
import { E_INVALID_SCHEMA } from '../errors.ts'

function isStandardSchema(value: unknown): value is StandardSchemaV1 {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return false
  const standard: unknown = Reflect.get(value, '~standard')
  return (
    typeof standard === 'object' &&
    standard !== null &&
    typeof Reflect.get(standard, 'validate') === 'function'
  )
}

/**
 * Returns `value` if it is a Standard Schema; null for undefined. Else throws E_INVALID_SCHEMA.
 *
 * @param where what the schema belongs to, for the message: `"input" of step "charge"`
 */
export function checkSchema(value: unknown, where: string): StandardSchemaV1 | null {
  if (value === undefined) return null
  if (!isStandardSchema(value)) throw new E_INVALID_SCHEMA([where])
  return value
}

import type { StandardSchemaV1 } from '@standard-schema/spec'
import { encode } from '../core/payload.ts'
import { E_INVALID_SCHEMA, SchemaValidationError } from '../errors.ts'

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

/** What a failure of each code says. */
const MISFITS = {
  invalid_input: 'The input does not fit its schema',
  invalid_output: 'The output does not fit its schema',
  schema_validation: 'The search attributes do not fit their schema',
}

/** The value as a Standard Schema gives it back; without a schema, the value. Throws SchemaValidationError. */
export async function parse(
  schema: StandardSchemaV1 | null | undefined,
  value: unknown,
  code: keyof typeof MISFITS
): Promise<unknown> {
  if (!schema) return value
  const result = await schema['~standard'].validate(value)
  if (!result.issues) return result.value
  const [first] = result.issues
  const path = first && pathOf(first)
  throw new SchemaValidationError(
    `${MISFITS[code]}${path ? ` at ${path}` : ''}: ${first?.message}`,
    code,
    storable(result.issues)
  )
}

/** The issues as they are, or where they cannot be stored, what every library says of them. */
function storable(issues: readonly StandardSchemaV1.Issue[]): unknown {
  try {
    encode(issues)
    return issues
  } catch {
    return issues.map((issue) => ({ message: issue.message, path: pathOf(issue) }))
  }
}

/** Keys, or objects with one; VineJS gives a text, which the standard does not know. */
function pathOf({ path }: StandardSchemaV1.Issue): string | undefined {
  const given: unknown = path
  if (!Array.isArray(given)) return typeof given === 'string' ? given : undefined
  const keys = given.map((part: unknown) =>
    typeof part === 'object' && part !== null ? Reflect.get(part, 'key') : part
  )
  return keys.map(String).join('.')
}

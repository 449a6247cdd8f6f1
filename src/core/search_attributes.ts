import { SchemaValidationError } from '../errors.ts'
import { problemOfName } from './name.ts'

/** What an application finds its runs by. Stored as JSON, so that a date is its ISO text; null takes one away. */
export type SearchAttributes = Readonly<Record<string, string | number | boolean | Date | null>>

/** Search attributes as they are stored. */
export type StoredAttribute = string | number | boolean

/** What the column of values holds, in bytes of JSON. */
const MAX_VALUE_BYTES = 512

/** The values as they are stored, null for those to take away. Throws SchemaValidationError with every problem. */
export function storedAttributes(values: unknown): Record<string, StoredAttribute | null> {
  if (typeof values !== 'object' || values === null || Array.isArray(values))
    throw rejected([{ message: 'search attributes are an object of names and values' }])
  const issues: { message: string; path: string[] }[] = []
  const stored: Record<string, StoredAttribute | null> = {}
  for (const [name, value] of Object.entries(values)) {
    if (value === undefined) continue
    const plain: unknown = value instanceof Date ? isoText(value) : value
    const nameProblem = problemOfName(name)
    const message =
      nameProblem === null ? problemOfValue(plain) : `the name cannot be used: ${nameProblem}`
    if (message === null) stored[name] = plain as StoredAttribute | null
    else issues.push({ message, path: [name] })
  }
  if (issues.length > 0) throw rejected(issues)
  return stored
}

/** The text under which a value is stored and looked for. */
export function attributeText(value: StoredAttribute | Date): string {
  return JSON.stringify(value)
}

function isoText(date: Date): string | undefined {
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString()
}

function problemOfValue(value: unknown): string | null {
  if (value === null || typeof value === 'boolean') return null
  if (typeof value === 'number' ? !Number.isFinite(value) : typeof value !== 'string')
    return 'a value is a text, a finite number, a boolean, a valid date, or null to take it away'
  const bytes = new TextEncoder().encode(JSON.stringify(value)).length
  return bytes <= MAX_VALUE_BYTES
    ? null
    : `the value takes ${bytes} bytes, and at most ${MAX_VALUE_BYTES} are stored`
}

function rejected(issues: readonly { message: string; path?: string[] }[]): SchemaValidationError {
  const [first] = issues
  const at = first?.path ? ` at ${first.path.join('.')}` : ''
  return new SchemaValidationError(
    `The search attributes cannot be stored${at}: ${first?.message}`,
    SchemaValidationError.code,
    issues
  )
}

/** JSON of any value that can be stored, for people and their tools: what JSON lacks is shown as text or array. */
export function readableJson(value: unknown, indent = 0): string {
  return JSON.stringify(value, shown, indent) ?? ''
}

function shown(_key: string, value: unknown): unknown {
  if (typeof value === 'bigint') return `${value}n`
  if (typeof value === 'number' && !Number.isFinite(value)) return String(value)
  if (value instanceof Map || value instanceof Set) return [...value]
  if (value instanceof Error) return { ...value, name: value.name, message: value.message }
  return value
}

/** An instant in ms as ISO text; empty for null. */
export function readableInstant(ms: number | null): string {
  return ms === null ? '' : new Date(ms).toISOString()
}

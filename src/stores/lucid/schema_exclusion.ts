import { tableNames } from './schema.ts'

interface ConnectionConfig {
  schemaGeneration?: { excludeTables?: string[] }
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

/**
 * Keeps the tables of this package out of the models that Lucid generates of the schema. Changes the connections of
 * `config/database.ts` in place, before Lucid reads them; what is no such configuration is left alone.
 */
export function excludeFromSchemaGeneration(databaseConfig: unknown): void {
  const connections: unknown = isObject(databaseConfig)
    ? Reflect.get(databaseConfig, 'connections')
    : null
  if (!isObject(connections)) return
  for (const connection of Object.values<unknown>({ ...connections })) {
    if (!isObject(connection)) continue
    const { schemaGeneration }: ConnectionConfig = connection
    const excludeTables = [
      ...new Set([...(schemaGeneration?.excludeTables ?? []), ...tableNames()]),
    ]
    Reflect.set(connection, 'schemaGeneration', { ...schemaGeneration, excludeTables })
  }
}

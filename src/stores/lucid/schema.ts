import { E_INVALID_CONFIG } from '../../errors.ts'
import { postgresDefinition } from './postgres/definition.ts'
import { sqliteDefinition } from './sqlite/definition.ts'
import { SCHEMA_VERSION, TABLES_OF_VERSION, type Table } from './tables.ts'

/** Lucid's schema builder: `this.schema` of a migration, or `db.connection().schema`. */
export interface SchemaBuilder {
  raw(sql: string): unknown
}

export type SchemaVersion = 1

/**
 * Adds the tables of a version to the statements of a migration. The version stays what it was when the migration
 * was written, so that a migration always makes the same tables.
 */
export function createDurableTables(
  schema: SchemaBuilder,
  { version }: { version: SchemaVersion }
): void {
  const define = definitionFor(schema)
  for (const table of tablesOf(version)) for (const sql of define(table)) schema.raw(sql)
}

/** Adds the removal of the tables of a version, and of all that is in them, to the statements of a migration. */
export function dropDurableTables(
  schema: SchemaBuilder,
  { version }: { version: SchemaVersion }
): void {
  for (const table of tablesOf(version).toReversed()) schema.raw(`drop table ${table.name}`)
}

/** Names of the tables that this package uses. */
export function tableNames(): string[] {
  return tablesOf(SCHEMA_VERSION).map((table) => table.name)
}

/** The newest version whose tables and columns are all there; 0 = none is complete. */
export function versionOfShape(found: readonly { table: string; column: string }[]): number {
  const columns = new Set(found.map(({ table, column }) => `${table}.${column}`))
  const isComplete = (table: Table) =>
    Object.keys(table.columns).every((column) => columns.has(`${table.name}.${column}`))
  const complete = [...TABLES_OF_VERSION].filter(([, tables]) => tables.every(isComplete))
  return Math.max(0, ...complete.map(([version]) => version))
}

function tablesOf(version: number): readonly Table[] {
  const tables = TABLES_OF_VERSION.get(version)
  if (tables) return tables
  throw new E_INVALID_CONFIG(['store', `durable has no tables of version ${version}`])
}

/** What writes a table in the language of the database that the builder belongs to. */
function definitionFor(schema: SchemaBuilder): (table: Table) => string[] {
  const client: unknown = Reflect.get(schema, 'client')
  const driver: unknown =
    typeof client === 'object' && client !== null ? Reflect.get(client, 'driverName') : undefined
  if (driver === 'better-sqlite3') return sqliteDefinition
  if (driver === 'pg') return postgresDefinition
  throw new E_INVALID_CONFIG(['store', `durable has no tables for the driver ${String(driver)}`])
}

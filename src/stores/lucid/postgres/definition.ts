import type { ColumnType, Index, Table } from '../tables.ts'

const KEY = 'text collate "C"'
const TYPES: Record<ColumnType, string> = {
  'key': `${KEY} not null`,
  'key?': KEY,
  'text': 'text not null',
  'text?': 'text',
  'integer': 'integer not null',
  'integer?': 'integer',
  'bigint': 'bigint not null',
  'bigint?': 'bigint',
  'serial': 'bigint generated always as identity primary key',
}

/** The statements that make a table. Keys are compared and ordered by their bytes, whatever the database's collation. */
export function postgresDefinition(table: Table): string[] {
  const columns = Object.entries(table.columns).map(([name, type]) => `${name} ${TYPES[type]}`)
  const key = table.primaryKey ?? []
  if (key.length > 0) columns.push(`primary key (${key.join(', ')})`)
  return [
    `create table ${table.name} (${columns.join(', ')})`,
    ...table.indexes.map((index) => indexDefinition(table.name, index)),
  ]
}

function indexDefinition(table: string, { name, columns, unique, where }: Index): string {
  const filter = where === undefined ? '' : ` where ${where}`
  return `create ${unique ? 'unique ' : ''}index ${name} on ${table} (${columns.join(', ')})${filter}`
}

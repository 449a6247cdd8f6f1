import type { ColumnType, Index, Table } from '../tables.ts'

const TYPES: Record<ColumnType, string> = {
  'key': 'text not null',
  'key?': 'text',
  'text': 'text not null',
  'text?': 'text',
  'integer': 'integer not null',
  'integer?': 'integer',
  'bigint': 'integer not null',
  'bigint?': 'integer',
  'serial': 'integer primary key',
}

/**
 * The statements that make a table. Tables with a key of several columns keep their rows in the order of the key,
 * so that the history of a run is read from neighbouring pages.
 */
export function sqliteDefinition(table: Table): string[] {
  const columns = Object.entries(table.columns).map(([name, type]) => `${name} ${TYPES[type]}`)
  const key = table.primaryKey ?? []
  if (key.length > 0) columns.push(`primary key (${key.join(', ')})`)
  const clustered = key.length > 1 ? ' without rowid' : ''
  return [
    `create table ${table.name} (${columns.join(', ')})${clustered}`,
    ...table.indexes.map((index) => indexDefinition(table.name, index)),
  ]
}

function indexDefinition(table: string, { name, columns, unique, where }: Index): string {
  const filter = where === undefined ? '' : ` where ${where}`
  return `create ${unique ? 'unique ' : ''}index ${name} on ${table} (${columns.join(', ')})${filter}`
}

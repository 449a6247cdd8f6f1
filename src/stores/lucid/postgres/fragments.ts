import type { Fragments, RowUpdate } from '../dialect.ts'

/**
 * A sub-select, so that a statement reads the clock once and can look for the instant in an index. The time is that of
 * the reading: that of the transaction would be older than what a wait for a lock has let in.
 */
const NOW = `(select floor(extract(epoch from clock_timestamp()) * 1000)::bigint
  + coalesce((select value from durable_meta where name = 'clock_offset'), 0))`

/** Locks the rows in order of their key before it changes any: two such statements never wait for each other. */
function update({ table, key, set, where, skipLocked = false }: RowUpdate): string {
  const lock = `for no key update${skipLocked ? ' skip locked' : ''}`
  return `with held as materialized (select ${key} from ${table} where ${where} order by ${key} ${lock})
    update ${table} set ${set} from held where ${table}.${key} = held.${key}`
}

const TEXTS = 'select value from json_array_elements_text(?::json) as texts (value)'

/** As an array: `in` is a join, and a plan that is made beside an empty table walks the table and asks for each row. */
function isAmong(column: string): string {
  return `${column} = any(array(${TEXTS}))`
}

function isAmongIntegers(column: string): string {
  return `${column} = any(array(${TEXTS})::integer[])`
}

export const FRAGMENTS: Fragments = {
  now: NOW,
  texts: TEXTS,
  isAmong,
  isAmongIntegers,
  update,
}

import type { Fragments } from '../dialect.ts'

const TEXTS = 'select value from json_each(?)'

export const FRAGMENTS: Fragments = {
  now: `(cast(round(unixepoch('subsec') * 1000) as integer)
    + coalesce((select value from durable_meta where name = 'clock_offset'), 0))`,
  texts: TEXTS,
  isAmong: (column) => `${column} in (${TEXTS})`,
  isAmongIntegers: (column) => `${column} in (${TEXTS})`,
  update: ({ table, set, where }) => `update ${table} set ${set} where ${where}`,
}

import type { Statement } from '../dialect.ts'

/** Several reads as one statement, whose rows say which of them they belong to. */
export class JointRead<T extends Record<string, object>> {
  readonly statement: Statement
  #names: (keyof T & string)[]

  constructor(statements: { [Name in keyof T]: Statement }) {
    this.#names = Object.keys(statements)
    const parts = this.#names.map(
      (name) =>
        `select '${name}' as name, row_to_json(part) as row from (${statements[name].sql}) part`
    )
    this.statement = {
      sql: parts.join(' union all '),
      values: this.#names.flatMap((name) => statements[name].values),
    }
  }

  /** The rows of each read. */
  rowsOf(found: readonly JointRow[]): { [Name in keyof T]: T[Name][] } {
    const rows: Partial<Record<keyof T, object[]>> = {}
    for (const name of this.#names) rows[name] = []
    for (const { name, row } of found) rows[name]?.push(row)
    return rows as { [Name in keyof T]: T[Name][] }
  }
}

export interface JointRow {
  name: string
  row: object
}

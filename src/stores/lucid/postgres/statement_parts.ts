import type { PgStatement } from './session.ts'

type PgValue = PgStatement['values'][number]

/**
 * A statement of many common table expressions, put together part by part. Each `?` has one value, in order of the
 * parts.
 */
export class StatementParts {
  #parts: string[] = []
  #values: PgValue[] = []

  add(sql: string, ...values: readonly PgValue[]): void {
    this.#parts.push(sql)
    this.#values.push(...values)
  }

  /** @param values those of the last select */
  build(select: string, values: readonly PgValue[]): PgStatement {
    return {
      sql: `with ${this.#parts.join(',\n')}\n${select}`,
      values: [...this.#values, ...values],
    }
  }
}

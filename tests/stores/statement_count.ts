import { IS_ANY_DUE } from '../../src/stores/lucid/sqlite/claim.ts'

/** What some work cost a store. */
export interface StatementCost {
  /** Without those that begin and end transactions. */
  statements: number
  transactions: number
}

/** Counts the statements of a store that was given `trace`. */
export class StatementCount {
  #seen: string[] = []

  readonly trace = (sql: string): void => {
    // Asked by a timer, whatever else happens.
    if (sql !== 'pragma data_version') this.#seen.push(sql)
  }

  /** What was traced since the last count began. */
  get seen(): readonly string[] {
    return this.#seen
  }

  async of(work: () => Promise<unknown>): Promise<StatementCost> {
    this.#seen = []
    await work()
    return costOf(this.#seen)
  }

  /** Without the looks of idle rounds, which are as many as there are hints, whatever the number of runs. */
  async ofRuns(work: () => Promise<unknown>): Promise<StatementCost> {
    await this.of(work)
    return costOf(this.#seen.filter((sql) => !isLook(sql)))
  }
}

function costOf(seen: readonly string[]): StatementCost {
  const transactions = seen.filter((sql) => sql === 'begin immediate').length
  return { statements: seen.length - 2 * transactions, transactions }
}

/** What a worker with nothing to do asks: whether something is due, and when something will be. */
function isLook(sql: string): boolean {
  return sql === IS_ANY_DUE || sql.startsWith('with keys as')
}

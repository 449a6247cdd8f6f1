import type { DatabaseAddress } from '../support/process_database.ts'
import { type CrashDatabase, createCrashDatabase } from './crash_database.ts'

/** As many databases of a kind as are needed at a time, each used again and again. */
export class CrashDatabases {
  readonly kind: DatabaseAddress['kind']
  #all: CrashDatabase[] = []
  #free: CrashDatabase[] = []

  constructor(kind: DatabaseAddress['kind']) {
    this.kind = kind
  }

  async take(): Promise<CrashDatabase> {
    const free = this.#free.pop()
    if (free) return free
    const database = await createCrashDatabase(this.kind)
    this.#all.push(database)
    return database
  }

  giveBack(database: CrashDatabase): void {
    this.#free.push(database)
  }

  /** Also those that nobody has given back. */
  async remove(): Promise<void> {
    for (const database of this.#all.splice(0)) await database.remove()
    this.#free = []
  }
}

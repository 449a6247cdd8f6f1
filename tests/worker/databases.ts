import type { Store } from '../../src/contracts/store.ts'
import { MemoryDatabase } from '../../src/stores/memory/memory_database.ts'
import { MemoryStore } from '../../src/stores/memory/memory_store.ts'
import { SqliteDatabase } from '../stores/sqlite_database.ts'

/** A database of a test, to which every application of the test has a connection of its own. */
export interface TestDatabase {
  /** `trace` is called with what is sent to the database, where there is such a text. */
  connect(trace?: (sql: string) => void): Promise<Store>
  remove(): Promise<void>
}

/** The databases that a test of workers is run on. */
export const DATABASES: Record<string, () => Promise<TestDatabase>> = {
  async memory() {
    const database = new MemoryDatabase()
    return { connect: async () => new MemoryStore(database), remove: async () => {} }
  },
  async SQLite() {
    const database = await SqliteDatabase.create()
    return {
      connect: (trace) => database.store(trace ? { trace } : {}),
      remove: () => database.remove(),
    }
  },
}

import type { Group } from '@japa/runner/core'
import type { Store } from '../../src/contracts/store.ts'
import { MemoryDatabase } from '../../src/stores/memory/memory_database.ts'
import { MemoryStore } from '../../src/stores/memory/memory_store.ts'
import { PostgresDatabase } from './postgres_database.ts'
import { SKIPPED } from './postgres_server.ts'
import { SqliteDatabase } from './sqlite_database.ts'

export type DatabaseKind = 'memory' | 'SQLite' | 'PostgreSQL'

/** Databases that a process shares with others; PostgreSQL where a server answers. */
export const SQL_KINDS: readonly Exclude<DatabaseKind, 'memory'>[] =
  SKIPPED === null ? ['SQLite', 'PostgreSQL'] : ['SQLite']

/** What tests of the engine and its workers are run on. */
export const KINDS: readonly DatabaseKind[] = ['memory', ...SQL_KINDS]

/** An empty database for one test. */
export interface TestDatabase {
  /** A connection of its own. `trace` is called with what is sent to the database, where there is such a text. */
  connect(trace?: (sql: string) => void): Promise<Store>
  /**
   * Statements of a test's own, for what no store does; there are none for a database in memory. They may change its
   * tables: no other test gets it.
   */
  run(sql: string): Promise<void>
  /** Called when the test is over. */
  remove(): Promise<void>
}

/** Of tests that are over, empty again: to make one takes longer than most tests do. */
const emptied: PostgresDatabase[] = []

export async function emptyDatabase(kind: DatabaseKind): Promise<TestDatabase> {
  switch (kind) {
    case 'memory': {
      const database = new MemoryDatabase()
      const run = () => Promise.reject(new Error('A database in memory has no statements'))
      return { connect: async () => new MemoryStore(database), run, remove: async () => {} }
    }
    case 'SQLite': {
      const database = await SqliteDatabase.create()
      return {
        connect: (trace) => database.store(trace ? { trace } : {}),
        run: (sql) => database.db.rawQuery(sql),
        remove: () => database.remove(),
      }
    }
    case 'PostgreSQL': {
      const database = emptied.pop() ?? (await PostgresDatabase.create())
      let isAltered = false
      return {
        connect: (trace) => database.store(trace ? { trace } : {}),
        run: (sql) => {
          isAltered = true
          return database.db.rawQuery(sql)
        },
        remove: async () => {
          if (isAltered) return database.remove()
          await database.clear()
          emptied.push(database)
        },
      }
    }
  }
}

/** Declares the same group of tests for each kind of database. */
export function onEach<Kind extends DatabaseKind>(
  kinds: readonly Kind[],
  declare: (kind: Kind) => Group
): void {
  for (const kind of kinds)
    declare(kind).teardown(async () => {
      for (const database of emptied.splice(0)) await database.remove()
    })
}

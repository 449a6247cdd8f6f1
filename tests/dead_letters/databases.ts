import { PostgresDatabase } from '../stores/postgres_database.ts'
import { SKIPPED } from '../stores/postgres_server.ts'
import { DATABASES, type TestDatabase } from '../worker/databases.ts'

async function postgres(): Promise<TestDatabase> {
  const database = await PostgresDatabase.create()
  return { connect: () => database.store(), remove: () => database.remove() }
}

/** The databases that rows about dead runs are proven on; PostgreSQL where a server answers. */
export const STORES: Record<string, () => Promise<TestDatabase>> =
  SKIPPED === null ? { ...DATABASES, PostgreSQL: postgres } : DATABASES

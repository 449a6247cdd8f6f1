import type { Group } from '@japa/runner/core'
import { cleanUp } from '../support/clean_up.ts'
import { PostgresDatabase } from './postgres_database.ts'
import { SKIPPED } from './postgres_server.ts'

/**
 * Gives the tests of a group one PostgreSQL database, which each of them finds empty. `begin` is called before each test,
 * and what it may resolve to when the test is over, before whatever is left of the stores is closed. Skips the tests where no server answers.
 */
export function usePostgres(
  group: Group,
  begin: (database: PostgresDatabase) => Promise<void | (() => Promise<void>)>
): void {
  group.tap((each) => each.skip(SKIPPED !== null, SKIPPED ?? ''))
  if (SKIPPED !== null) return
  let database: PostgresDatabase
  group.setup(async () => {
    database = await PostgresDatabase.create()
    return () => database.remove()
  })
  group.each.setup(async () => {
    const end = await begin(database)
    return () =>
      cleanUp(
        () => end?.(),
        () => database.clear()
      )
  })
}

import type { ApplicationService } from '@adonisjs/core/types'
import type {} from '@adonisjs/lucid/database_provider'
import type { ConnectionContract } from '@adonisjs/lucid/types/database'

/**
 * Calls `listener` with each query that is sent through Lucid, in the asynchronous context of whoever sends it. Without
 * Lucid it does nothing.
 */
export async function watchQueries(
  app: ApplicationService,
  listener: (sql: string) => void
): Promise<void> {
  if (!app.container.hasBinding('lucid.db')) return
  const watch = ({ client, readClient }: ConnectionContract) => {
    for (const each of new Set([client, readClient]))
      each?.on('query', ({ sql }: { sql: string }) => listener(sql))
  }
  const db = await app.container.make('lucid.db')
  const emitter = await app.container.make('emitter')
  for (const { connection } of db.manager.connections.values()) if (connection) watch(connection)
  emitter.on('db:connection:connect', watch)
}

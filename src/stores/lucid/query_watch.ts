import type { ApplicationService } from '@adonisjs/core/types'
import type {} from '@adonisjs/lucid/database_provider'
import type { ConnectionContract } from '@adonisjs/lucid/types/database'

/**
 * Calls `listener` with each query that is sent through Lucid, in the asynchronous context of whoever sends it, until the
 * returned function is called. Without Lucid it does nothing.
 */
export async function watchQueries(
  app: ApplicationService,
  listener: (sql: string) => void
): Promise<() => void> {
  if (!app.container.hasBinding('lucid.db')) return () => {}
  const db = await app.container.make('lucid.db')
  const emitter = await app.container.make('emitter')
  const heard = ({ sql }: { sql: string }) => listener(sql)
  const leave = ({ client, readClient }: ConnectionContract) => {
    for (const each of [client, readClient]) each?.off('query', heard)
  }
  /** One that is open already may still be announced: each is listened to once. */
  const watch = (connection: ConnectionContract) => {
    leave(connection)
    for (const each of new Set([connection.client, connection.readClient])) each?.on('query', heard)
  }
  const onAll = (act: (connection: ConnectionContract) => void) => {
    for (const { connection } of db.manager.connections.values()) if (connection) act(connection)
  }
  onAll(watch)
  const forget = emitter.on('db:connection:connect', watch)
  return () => {
    forget()
    onAll(leave)
  }
}

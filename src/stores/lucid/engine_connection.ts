import type { Database } from '@adonisjs/lucid/database'
import { E_INVALID_CONFIG } from '../../errors.ts'

/** A Lucid connection of the engine's own, with the configuration of one of the application's. */
export interface EngineConnection {
  /** Opens a connection with the driver; nobody else uses it, and whoever opened it closes it. */
  openHandle(): Promise<unknown>
  /** Takes the Lucid connection away. */
  remove(): Promise<void>
}

/**
 * Adds a Lucid connection that is made of the configuration of `connection`. It emits no `db:query`.
 *
 * @param params.clients the drivers that will do, as Lucid names them
 * @throws E_INVALID_CONFIG when there is no such connection, or it uses another driver
 */
export function addEngineConnection(params: {
  db: Database
  connection: string
  clients: readonly string[]
}): EngineConnection {
  const { db, connection, clients } = params
  const config = db.manager.get(connection)?.config
  if (config === undefined) throw refusal(connection, 'is not in config/database.ts')
  if (!clients.includes(config.client)) {
    const needed = clients.map((client) => `"${client}"`).join(' or ')
    throw refusal(connection, `uses "${config.client}", and durable needs ${needed}`)
  }
  const name = freeName(db, connection)
  db.manager.add(name, { ...config, debug: false, pool: { min: 0, max: 1 } })
  const { client } = db.connection(name).getWriteClient()
  return {
    // Not through the pool: it would wait for this handle whenever the application closes all of its connections.
    openHandle: () => client.acquireRawConnection(),
    remove: () => db.manager.close(name, true),
  }
}

export function refusal(connection: string, problem: string) {
  return new E_INVALID_CONFIG(['store', `the database connection "${connection}" ${problem}`])
}

/** Several stores of one process, as in tests, have a connection each. */
function freeName(db: Database, connection: string): string {
  let name = `durable:${connection}`
  for (let count = 2; db.manager.has(name); count++) name = `durable:${connection}:${count}`
  return name
}

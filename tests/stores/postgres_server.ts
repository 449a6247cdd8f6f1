import { Emitter } from '@adonisjs/core/events'
import { AppFactory } from '@adonisjs/core/factories/app'
import { LoggerFactory } from '@adonisjs/core/factories/logger'
import { Database } from '@adonisjs/lucid/database'
import pg from 'pg'

export interface PostgresServer {
  host: string
  port: number
  user: string
  password?: string | undefined
}

const { PGHOST = '127.0.0.1', PGPORT = '5432', PGUSER = 'postgres', PGPASSWORD } = process.env

/** The server that tests use, with the variables of PostgreSQL's own tools. */
export const SERVER: PostgresServer = {
  host: PGHOST,
  port: Number(PGPORT),
  user: PGUSER,
  password: PGPASSWORD,
}

/** Why tests that need the server are skipped; null = they run, and fail if there is none where there must be. */
export const SKIPPED: string | null = await whySkipped()

async function whySkipped(): Promise<string | null> {
  if (process.env.DURABLE_REQUIRE_SERVICES) return null
  const client = new pg.Client({ ...SERVER, database: 'postgres', connectionTimeoutMillis: 3_000 })
  try {
    await client.connect()
    await client.end()
    return null
  } catch (error) {
    return `no PostgreSQL at ${SERVER.host}:${SERVER.port} (${error instanceof Error ? error.message : error})`
  }
}

/** A plain connection of a test's own. */
export async function connectClient(
  database: string,
  server: PostgresServer = SERVER
): Promise<pg.Client> {
  const client = new pg.Client({ ...server, database })
  client.on('error', () => {})
  await client.connect()
  return client
}

/** Lucid on one database, as an application has it. */
export function connectTo(
  database: string,
  server: PostgresServer = SERVER,
  searchPath: string[] = ['public']
): Database {
  const app = new AppFactory().create(new URL('./', import.meta.url))
  const { host, port, user, password } = server
  const connection = { host, port, user, database, ...(password !== undefined && { password }) }
  return new Database(
    { connection: 'app', connections: { app: { client: 'pg', connection, searchPath } } },
    new LoggerFactory().create(),
    new Emitter(app)
  )
}

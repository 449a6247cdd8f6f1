import type { Statement } from '../dialect.ts'
import type { PostgresSession } from './session.ts'

/** The channel of the installation whose tables are in the session's schema. */
export function channelOf({ schema }: Pick<PostgresSession, 'schema'>): string {
  return `durable:${schema}`.slice(0, 60)
}

/** Told to all who listen when the transaction commits. */
export function notify(session: PostgresSession, payload: string): Statement {
  return { sql: 'select pg_notify(?, ?)', values: [channelOf(session), payload] }
}

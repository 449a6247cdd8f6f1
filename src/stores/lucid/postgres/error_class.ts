/**
 * What follows from an error of the database.
 *
 * `data`: it is about the values that were written: the batch is split by run. `conflict`: nothing was applied, and the
 * same once more may succeed at once. `lock`: somebody holds a row for longer than a flush waits. `connection`: the
 * connection is lost, or of no use any more; whether a write under way was applied is unknown. `other`: everything
 * else (a full disk, a missing table, a read-only server), told to the caller; nothing was applied.
 */
export type ErrorClass = 'data' | 'conflict' | 'lock' | 'connection' | 'other'

/** Longer beginnings come first. */
const CLASSES: readonly (readonly [prefix: string, ErrorClass])[] = [
  ['22', 'data'],
  ['23', 'data'],
  ['54000', 'data'],
  ['P0001', 'data'],
  ['40', 'conflict'],
  ['55P03', 'lock'],
  ['08', 'connection'],
  ['25P03', 'connection'],
  // A read-only server: after a switch-over the next connection may find the other one.
  ['25006', 'connection'],
  ['25P04', 'connection'],
  ['57P', 'connection'],
  ['53300', 'connection'],
  // A prepared statement that the session has lost, has twice, or that no longer fits its table.
  ['26000', 'connection'],
  ['42P05', 'connection'],
  ['0A000', 'connection'],
  ['ECONN', 'connection'],
  ['EPIPE', 'connection'],
  ['ETIMEDOUT', 'connection'],
  ['EHOSTUNREACH', 'connection'],
  ['EHOSTDOWN', 'connection'],
  ['ENETUNREACH', 'connection'],
  ['ENETDOWN', 'connection'],
  ['ENOTFOUND', 'connection'],
  ['EAI_AGAIN', 'connection'],
  ['ENOENT', 'connection'],
]

/** What the driver says, without a code, of a connection that is gone. */
const LOST = /^(Connection terminated|Client has encountered|Client was closed|timeout expired)/

/** The server's failure to answer in time; the connection has been dropped. */
export class PostgresDeadlineError extends Error {
  constructor(ms: number) {
    super(`PostgreSQL has not answered for ${ms} ms; the connection is dropped`)
  }
}

/** The driver could not send a value: a text that is too long for a message, or one of no type it knows. */
class PostgresValueError extends Error {
  constructor(cause: Error) {
    super(cause.message, { cause })
  }
}

/** What the driver threw, told from the same errors of our own code. */
export function thrownByDriver(error: unknown): unknown {
  const isOfValue = error instanceof TypeError || error instanceof RangeError
  return isOfValue ? new PostgresValueError(error) : error
}

/** Only what the driver threw is about the values that were written. */
export function errorClass(error: unknown): ErrorClass {
  if (error instanceof PostgresDeadlineError) return 'connection'
  if (error instanceof PostgresValueError) return 'data'
  const code = codeOf(error)
  const found = CLASSES.find(([prefix]) => code.startsWith(prefix))
  if (found) return found[1]
  return error instanceof Error && LOST.test(error.message) ? 'connection' : 'other'
}

/** SQLSTATE, or the code of Node; empty: none. */
function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return ''
  const code: unknown = Reflect.get(error, 'code')
  return typeof code === 'string' ? code : ''
}

/** The server takes no more connections. */
export function isOutOfConnections(error: unknown): boolean {
  return codeOf(error) === '53300'
}

/** A run of this id has been inserted by another connection since it was looked for. */
export function isTakenId(error: unknown): boolean {
  const constraint: unknown = error instanceof Error ? Reflect.get(error, 'constraint') : null
  return codeOf(error) === '23505' && constraint === 'durable_runs_pkey'
}

import type { PgStatement } from './session.ts'

/** Names our advisory locks among those of the application. */
const CLASS = 0x64757261
/**
 * Tokens are locked by hash: a flush then takes a bounded share of the server's lock table, and two tokens that share a
 * lock only wait for each other.
 */
const STRIPES = 256

/** The locks of these tokens, each once, in the order in which every process takes them. */
export function stripesOf(tokens: readonly string[]): number[] {
  return [...new Set(tokens.map(stripeOf))].toSorted((one, other) => one - other)
}

/** Waits for all; they are held until the transaction ends. */
export function lockTokens(stripes: readonly number[]): PgStatement {
  const sql = `select pg_advisory_xact_lock(${CLASS}, stripe) from unnest(?::integer[]) stripe`
  return { sql, values: [stripes] }
}

/** Takes those that are free, and says which. */
export function tryTokens(stripes: readonly number[]): PgStatement {
  const sql = `select pg_try_advisory_xact_lock(${CLASS}, stripe) as "isLocked" from unnest(?::integer[]) stripe`
  return { sql, values: [stripes] }
}

/** FNV-1a; the same in every version, since processes of two versions must take the same lock. */
function stripeOf(token: string): number {
  let hash = 0x811c9dc5
  for (let index = 0; index < token.length; index++)
    hash = Math.imul(hash ^ token.charCodeAt(index), 0x01000193)
  return (hash >>> 0) % STRIPES
}

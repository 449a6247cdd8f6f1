/** What the store uses of a better-sqlite3 connection, which is an optional dependency of the application. */
export interface SqliteHandle {
  readonly inTransaction: boolean
  prepare(sql: string): SqliteStatement
  exec(sql: string): unknown
  close(): unknown
}

export interface SqliteStatement {
  /** Whether it returns rows. */
  readonly reader: boolean
  all(values: readonly unknown[]): unknown[]
  run(values: readonly unknown[]): { changes: number }
  safeIntegers(toggle: boolean): unknown
}

/** Opens a file with the driver that made `handle`, refusing at once what others hold. */
export function openLike(handle: SqliteHandle, file: string): SqliteHandle {
  const Driver = handle.constructor as new (
    file: string,
    options: { timeout: number }
  ) => SqliteHandle
  return new Driver(file, { timeout: 0 })
}

/** Another connection holds what was asked for; the same call may succeed a moment later. */
export function isBusy(error: unknown): boolean {
  return codeOf(error).startsWith('SQLITE_BUSY')
}

/** The driver cannot bind a value: it is too large, or of no type that it knows. */
class SqliteValueError extends Error {
  constructor(cause: Error) {
    super(cause.message, { cause })
  }
}

/** Calls the driver, whose errors are told from the same ones of our own code. */
export function asked<T>(driver: () => T): T {
  try {
    return driver()
  } catch (error) {
    if (error instanceof TypeError || error instanceof RangeError) throw new SqliteValueError(error)
    throw error
  }
}

/**
 * The error is about the values that were written: a constraint, a value that is too large or cannot be bound.
 * All others (a full disk, a read-only file, a lock) are about the state of the database.
 */
export function isDataError(error: unknown): boolean {
  if (error instanceof SqliteValueError) return true
  return /^SQLITE_(CONSTRAINT|TOOBIG|MISMATCH|RANGE)/.test(codeOf(error))
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}

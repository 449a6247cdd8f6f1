/** What the store uses of a connection of `pg`, which is an optional dependency of the application. */
export interface PgClient {
  /** Process id of the server's side, as the server announced it; a pooler between announces one of its own. */
  readonly processID: number | null
  /** Sends queries without waiting for the answers to those before; older versions of `pg` know nothing of it. */
  pipeline?: boolean
  readonly connection: { readonly stream: { destroy(error: Error): unknown } }
  query(query: PgQuery): Promise<PgResult>
  end(): Promise<void>
  setTypeParser(oid: number, parse: (text: string) => unknown): void
  on(event: 'error' | 'end', listener: () => void): unknown
  on(event: 'notification', listener: (message: PgNotification) => void): unknown
}

export interface PgQuery {
  /** Prepared under this name at the first use; left out = parsed each time. */
  name?: string
  text: string
  values: readonly unknown[]
}

export interface PgResult {
  /** First word of the command, as the server answers it: `COMMIT`, or `ROLLBACK` to a commit that failed. */
  command: string
  rows: unknown[]
  /** Number of changed rows; null for commands that change none. */
  rowCount: number | null
  fields: { name: string; dataTypeID: number }[]
}

interface PgNotification {
  channel: string
  payload?: string | undefined
}

/** Oid of `bigint`, which `pg` gives as text; all of ours are safe integers. */
export const INT8 = 20

import { clearTimeout, setTimeout } from 'node:timers'
import { setTimeout as delay } from 'node:timers/promises'
import { E_ENGINE_STOPPED } from '../../../errors.ts'
import type { PgClient } from './driver.ts'
import { errorClass, PostgresDeadlineError } from './error_class.ts'
import { type Backend, LOCK_MS, PostgresSession, STATEMENT_MS } from './session.ts'

export interface PostgresConnectionOptions {
  /** Opens a connection with the driver. */
  openHandle: () => Promise<unknown>
  trace: ((sql: string) => void) | undefined
  /** How long a statement may take before the connection is dropped, in ms. Default 10,000. */
  statementMs?: number | undefined
  /** How long a statement waits for one lock, in ms. Default 1,000. */
  lockMs?: number | undefined
  /** Closes the connection when it has not been used for so long, in ms. Default: never. */
  idleMs?: number
  /** Prepares each new session before anybody uses it. */
  onOpen?: (session: PostgresSession) => Promise<void>
  /** Called when a session is gone that was not closed here. */
  onLost?: () => void
}

const CONNECT_MS = 10_000
const END_MS = 1_000
const END_POLL_MS = 20

/**
 * A connection that is opened when it is first used, and again when it has been lost. Whatever the lost session still
 * does on the server is ended before the new one is used: neither its locks nor a late commit outlive it.
 */
export class PostgresConnection {
  #options: PostgresConnectionOptions
  #session: PostgresSession | null = null
  #opening: Promise<PostgresSession> | null = null
  /** What may still be there on the server. */
  #lost = new Set<Backend>()
  #isClosed = false
  #idle: NodeJS.Timeout | undefined

  constructor(options: PostgresConnectionOptions) {
    this.#options = options
  }

  /** The open session. Rejects with the driver's error when there is none to be had now. */
  async session(): Promise<PostgresSession> {
    if (this.#isClosed) throw new E_ENGINE_STOPPED()
    this.#restartIdle()
    if (this.#session?.isOpen) return this.#session
    this.#opening ??= this.#open().finally(() => (this.#opening = null))
    return this.#opening
  }

  /** Runs `work` on the session, and once more on a new one if its connection is lost: only what may be done twice. */
  async repeatable<T>(work: (session: PostgresSession) => Promise<T>): Promise<T> {
    try {
      return await work(await this.session())
    } catch (error) {
      if (this.#isClosed || errorClass(error) !== 'connection') throw error
    }
    return work(await this.session())
  }

  /** Idempotent; the next use opens it again, unless it is closed for good. */
  async close({ forGood }: { forGood: boolean }): Promise<void> {
    clearTimeout(this.#idle)
    this.#isClosed ||= forGood
    await this.#opening?.catch(() => undefined)
    const session = this.#session
    this.#session = null
    await session?.close()
  }

  /** Lets a connection that was closed be opened again. */
  reopen(): void {
    this.#isClosed = false
  }

  #restartIdle(): void {
    const { idleMs } = this.#options
    if (idleMs === undefined) return
    clearTimeout(this.#idle)
    const close = () => this.close({ forGood: false }).catch(() => undefined)
    this.#idle = setTimeout(() => void close(), idleMs).unref()
  }

  async #open(): Promise<PostgresSession> {
    const session = await this.#newSession()
    try {
      for (const lost of this.#lost) {
        await endBackend(session, lost)
        this.#lost.delete(lost)
      }
      await this.#options.onOpen?.(session)
    } catch (error) {
      await session.close()
      throw error
    }
    this.#session = session
    return session
  }

  async #newSession(): Promise<PostgresSession> {
    const opening = this.#options.openHandle() as Promise<PgClient>
    const client = await within(CONNECT_MS, opening)
    const { trace, statementMs = STATEMENT_MS, lockMs = LOCK_MS } = this.#options
    // Null until it is set up: before, it has done nothing that would have to be ended.
    let session: PostgresSession | null = null
    const onEnd = () => {
      if (session?.backend) this.#lost.add(session.backend)
      this.#options.onLost?.()
    }
    session = await PostgresSession.over(client, { trace, statementMs, lockMs, onEnd })
    return session
  }
}

/** Waits for the driver; a client that comes too late is closed. */
async function within(ms: number, opening: Promise<PgClient>): Promise<PgClient> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => {
    opening.then((client) => client.end()).catch(() => undefined)
    late.reject(new PostgresDeadlineError(ms))
  }, ms)
  try {
    return await Promise.race([opening, late.promise])
  } finally {
    clearTimeout(timer)
  }
}

/** Ends a session on the server whose connection is lost, and waits until it is gone, a second at most. */
async function endBackend(session: PostgresSession, { pid, started }: Backend): Promise<void> {
  const sql = `select pg_terminate_backend(pid) from pg_stat_activity
    where pid = ? and backend_start::text = ?`
  for (let waited = 0; waited < END_MS; waited += END_POLL_MS) {
    const [result] = await session.run([{ sql, values: [pid, started] }])
    if (result?.rows.length === 0) return
    await delay(END_POLL_MS)
  }
}

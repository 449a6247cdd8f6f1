import { createHash } from 'node:crypto'
import type { NameLock } from '../../../contracts/store.ts'
import type { PostgresSession } from './session.ts'

/**
 * Locks on worker names: advisory locks of the session. They are gone when its connection is, and taken again with the
 * next one; whoever has taken a name meanwhile keeps it.
 */
export class SessionNames {
  #session: () => Promise<PostgresSession>
  #held = new Map<string, HeldName>()

  constructor(session: () => Promise<PostgresSession>) {
    this.#session = session
  }

  async take(name: string): Promise<NameLock | null> {
    // First: a session that is opened for it would take the name too if it were held by then, and it is released once.
    const session = await this.#session()
    if (this.#held.has(name)) return null
    const held: HeldName = { listeners: new Set() }
    this.#held.set(name, held)
    try {
      if (await isTaken(session, name)) return this.#lock(name, held)
    } catch (error) {
      this.#forget(name, held)
      throw error
    }
    this.#forget(name, held)
    return null
  }

  /** Takes every held name again on a new session. */
  async retake(session: PostgresSession): Promise<void> {
    for (const [name, held] of this.#held) {
      if (await isTaken(session, name)) continue
      this.#forget(name, held)
      for (const listener of held.listeners) listener()
    }
  }

  /** Forgets all of them: the session is closed, which frees them. */
  clear(): void {
    this.#held.clear()
  }

  #lock(name: string, held: HeldName): NameLock {
    return {
      release: async () => {
        if (!this.#forget(name, held)) return
        const session = await this.#session()
        const key = keyOf(session, name)
        await session.run([{ sql: 'select pg_advisory_unlock(?::bigint)', values: [key] }])
      },
      onLost: (listener) => void held.listeners.add(listener),
    }
  }

  #forget(name: string, held: HeldName): boolean {
    return this.#held.get(name) === held && this.#held.delete(name)
  }
}

interface HeldName {
  listeners: Set<() => void>
}

async function isTaken(session: PostgresSession, name: string): Promise<boolean> {
  const sql = 'select pg_try_advisory_lock(?::bigint) as taken'
  const [result] = await session.run([{ sql, values: [keyOf(session, name)] }])
  const [row] = (result?.rows ?? []) as { taken: boolean }[]
  return row?.taken === true
}

/** Advisory locks are numbers, shared by all of a database: the schema tells installations apart. */
function keyOf({ schema }: PostgresSession, name: string): string {
  const digest = createHash('sha256').update(`durable ${schema} ${name}`).digest()
  return digest.readBigInt64BE(0).toString()
}

import type { Group } from '@japa/runner/core'
import type { LucidStore } from '../../src/stores/lucid/lucid_store.ts'
import type { PostgresDatabase } from './postgres_database.ts'
import { usePostgres } from './postgres_group.ts'
import { PostgresProxy } from './postgres_proxy.ts'
import { connectTo } from './postgres_server.ts'

/** A store whose connections go through a proxy of the test. */
export interface ProxiedStore {
  store: LucidStore
  proxy: PostgresProxy
  end(): Promise<void>
}

export async function proxiedStore(
  database: PostgresDatabase,
  options: { busyLimitMs: number }
): Promise<ProxiedStore> {
  const proxy = await PostgresProxy.start(database.server)
  const db = connectTo(database.name, proxy.address)
  const store = await database.store({ db, ...options })
  const end = async () => {
    proxy.up()
    await store.close()
    await db.manager.closeAll()
    await proxy.stop()
  }
  return { store, proxy, end }
}

/** What the tests of a group find before each of them; see `usePostgres`. */
export interface ProxiedSite extends Omit<ProxiedStore, 'end'> {
  /** Not through the proxy. */
  database: PostgresDatabase
}

/** Gives the tests of a group a store that reaches its database through a proxy. */
export function useProxiedPostgres(group: Group, options: { busyLimitMs: number }): ProxiedSite {
  const site: Partial<ProxiedSite> = {}
  usePostgres(group, async (database) => {
    const { end, ...proxied } = await proxiedStore(database, options)
    Object.assign(site, { database, ...proxied })
    return end
  })
  // Filled before each test.
  return site as ProxiedSite
}

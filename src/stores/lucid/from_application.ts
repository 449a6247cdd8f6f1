import type { ApplicationService } from '@adonisjs/core/types'
import type {} from '@adonisjs/lucid/database_provider'
import { E_INVALID_CONFIG } from '../../errors.ts'
import { LucidStore, type LucidStoreOptions } from './lucid_store.ts'

/**
 * What makes the store on a connection of the application's Lucid; making it opens nothing.
 *
 * @throws E_INVALID_CONFIG when Lucid is not configured or does not know the connection
 */
export async function lucidStoreOf(
  app: ApplicationService,
  options: Pick<LucidStoreOptions, 'connection' | 'direct'>
): Promise<() => LucidStore> {
  if (!app.container.hasBinding('lucid.db')) {
    throw new E_INVALID_CONFIG([
      'store',
      'stores.lucid() needs Lucid, which this application has not configured. Run "node ace add @adonisjs/lucid", ' +
        'or use stores.memory(), which forgets everything when the process ends',
    ])
  }
  const db = await app.container.make('lucid.db')
  for (const name of [options.connection, options.direct]) {
    if (name === undefined || db.manager.has(name)) continue
    throw new E_INVALID_CONFIG([
      'store',
      `got the connection "${name}", expected one of config/database.ts`,
    ])
  }
  const logger = await app.container.make('logger')
  return () => new LucidStore({ db, ...options, warn: (message) => logger.warn(message) })
}

import { configProvider } from '@adonisjs/core'
import type { ConfigProvider } from '@adonisjs/core/types'
import { checkOptions } from './core/known_options.ts'
import type { Store } from './contracts/store.ts'
import { E_INVALID_CONFIG } from './errors.ts'
import { resolveOptions, type GivenOptions, type ResolvedOptions } from './options.ts'

/** Resolves, when the engine first needs its store, to what makes the store. Making it opens nothing. */
export type StoreProvider = ConfigProvider<() => Store>

/** What `config/durable.ts` may hold: every key is optional. */
export interface DurableConfig extends GivenOptions {
  /** Where runs and histories live. Default `stores.lucid()`: the default connection of Lucid. */
  store?: StoreProvider | undefined
}

/** A configuration with every default filled in. */
export interface ResolvedConfig {
  options: ResolvedOptions
  store: StoreProvider
}

/** The stores to choose from. */
export const stores = {
  /** Runs live in this process and end with it: for tests. */
  memory(): StoreProvider {
    return configProvider.create(async () => {
      const { MemoryStore } = await import('./stores/memory/memory_store.ts')
      return () => new MemoryStore()
    })
  },

  /**
   * Runs live in the application's database, on connections of their own.
   *
   * @param options.connection name of a Lucid connection; default: Lucid's default one
   * @param options.direct PostgreSQL behind a transaction pooler: name of a Lucid connection that goes past it, for
   * claims, leases and notifications; default: `connection`
   * @throws E_UNKNOWN_OPTION, E_INVALID_OPTION
   */
  lucid(options: { connection?: string; direct?: string } = {}): StoreProvider {
    checkOptions('stores.lucid()', options, { connection: true, direct: true })
    return configProvider.create(async (app) => {
      const { lucidStoreOf } = await import('./stores/lucid/from_application.ts')
      return lucidStoreOf(app, options)
    })
  },
}

function isConfigProvider(value: unknown): value is StoreProvider {
  return typeof value === 'object' && value !== null && Reflect.get(value, 'type') === 'provider'
}

/**
 * The configuration of `config/durable.ts`. Everything has a default; what is given is checked at once.
 *
 * @throws E_INVALID_CONFIG, naming the option, what it got and what it expects
 */
export function defineConfig(config: DurableConfig = {}): ConfigProvider<ResolvedConfig> {
  const { store = stores.lucid(), ...given } = config
  if (!isConfigProvider(store)) {
    throw new E_INVALID_CONFIG(['store', 'expected stores.lucid() or stores.memory()'])
  }
  const options = resolveOptions(given, ['store'])
  return configProvider.create(async () => ({ options, store }))
}

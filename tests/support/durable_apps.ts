import type { Store } from '../../src/contracts/store.ts'
import type { TestDatabase } from '../stores/databases.ts'
import { cleanUp } from './clean_up.ts'
import { type AppParams, DurableApp } from './durable_app.ts'

/** The applications of one test, each with a connection of its own to one database. */
export abstract class DurableApps {
  readonly database: TestDatabase
  #apps = new Set<DurableApp>()

  protected constructor(database: TestDatabase) {
    this.database = database
  }

  /** An application that executes nothing yet. */
  async add(params: AppParams = {}): Promise<DurableApp> {
    const store: Store = params.store ?? (await this.database.connect())
    const app = new DurableApp({ ...params, store })
    this.#apps.add(app)
    return app
  }

  /** Stops an application before the test is over. */
  async stop(app: DurableApp): Promise<void> {
    this.#apps.delete(app)
    await app.close()
  }

  /** Stops all of them; nothing may be stranded then (P4). */
  async close(): Promise<void> {
    await cleanUp(
      ...[...this.#apps].map((app) => () => app.close()),
      () => this.#refuseStranded(),
      () => this.database.remove()
    )
  }

  async #refuseStranded(): Promise<void> {
    const store = await this.database.connect()
    const stranded = await store.findStranded()
    await store.close()
    if (stranded.length > 0) throw new Error(`Stranded: ${JSON.stringify(stranded)}`)
  }
}

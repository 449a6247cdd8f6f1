import type { Store } from '../../src/contracts/store.ts'
import type { WorkflowEngine } from '../../src/engine/engine.ts'
import type { GivenOptions } from '../../src/options.ts'
import type { DurableApp } from '../support/durable_app.ts'
import { DurableApps } from '../support/durable_apps.ts'
import { type DatabaseKind, emptyDatabase } from '../stores/databases.ts'
import { Connection } from '../support/connection.ts'
import { Gate } from '../support/gate.ts'

/** A workflow of three steps that pass a gate each. */
export const THREE = { name: 'three', version: '1' }

/** An application with a connection of its own that can be cut. */
export interface Application {
  app: DurableApp
  engine: WorkflowEngine
  connection: Connection
  /** One for each step of `THREE`, as this application executes it. */
  gates: readonly [Gate, Gate, Gate]
  openAll(): void
}

/** Applications on one database, as a test makes them. */
export class Cluster extends DurableApps {
  #applications: Application[] = []

  static async on(kind: DatabaseKind): Promise<Cluster> {
    return new Cluster(await emptyDatabase(kind))
  }

  /** A connection that no application uses. */
  store(): Promise<Store> {
    return this.database.connect()
  }

  async application(options: GivenOptions, trace?: (sql: string) => void): Promise<Application> {
    const connection = new Connection(await this.database.connect(trace))
    const app = await this.add({ store: connection.store, options })
    const gates = [new Gate(), new Gate(), new Gate()] as const
    app.engine.register('three', '1', async (ctx) => {
      for (const [index, gate] of gates.entries())
        await ctx.localStep(`step-${index}`, (step) => gate.pass(step.signal), { retries: 0 })
      return 'done'
    })
    const openAll = () => gates.forEach((gate) => gate.open())
    const application = { app, engine: app.engine, connection, gates, openAll }
    this.#applications.push(application)
    return application
  }

  /** Stops every application, whatever became of its connection; nothing may be stranded then (P4). */
  override async close(): Promise<void> {
    for (const { connection, openAll } of this.#applications) {
      connection.restore()
      connection.thaw()
      openAll()
    }
    await super.close()
  }
}

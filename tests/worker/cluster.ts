import type { Store } from '../../src/contracts/store.ts'
import type { WorkflowEngine } from '../../src/engine/engine.ts'
import type { GivenOptions } from '../../src/options.ts'
import { DurableApp } from '../engine/durable_app.ts'
import { Connection } from './connection.ts'
import { DATABASES, type TestDatabase } from './databases.ts'
import { Gate } from './gate.ts'

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
export class Cluster {
  #database: TestDatabase
  #applications: Application[] = []

  private constructor(database: TestDatabase) {
    this.#database = database
  }

  /** @param kind a name among `DATABASES` */
  static async on(kind: string): Promise<Cluster> {
    const create = DATABASES[kind]
    if (!create) throw new Error(`There is no database "${kind}"`)
    return new Cluster(await create())
  }

  /** A connection that no application uses. */
  store(): Promise<Store> {
    return this.#database.connect()
  }

  async application(options: GivenOptions, trace?: (sql: string) => void): Promise<Application> {
    const connection = new Connection(await this.#database.connect(trace))
    const app = new DurableApp({ store: connection.store, options })
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

  /** Stops every application, whatever became of its connection. */
  async close(): Promise<void> {
    for (const { connection, openAll } of this.#applications) {
      connection.restore()
      connection.thaw()
      openAll()
    }
    for (const { app } of this.#applications) await app.close()
    await this.#database.remove()
  }
}

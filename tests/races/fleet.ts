import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type pg from 'pg'
import type { WorkflowEngine } from '../../src/engine/engine.ts'
import { Effects } from '../support/effects.ts'
import { ForkedProcess } from '../support/forked_process.ts'
import { processApp } from '../support/process_app.ts'
import { PostgresDatabase } from '../stores/postgres_database.ts'
import { connectClient, type PostgresServer } from '../stores/postgres_server.ts'
import { cleanUp } from '../support/clean_up.ts'
import { until } from '../support/until.ts'
import type { FleetOrder } from './fleet_process.ts'
import { registerMixed } from './mixed_runs.ts'

const SCRIPT = new URL('./fleet_process.ts', import.meta.url)

export type FleetProcess = ForkedProcess<'ready'>

/** Workers in processes of their own on one database, and in this one the application that starts runs. */
export class Fleet {
  readonly engine: WorkflowEngine
  readonly effects: Effects
  readonly processes: FleetProcess[] = []
  #database: PostgresDatabase
  #directory: string

  private constructor(params: {
    database: PostgresDatabase
    engine: WorkflowEngine
    directory: string
  }) {
    this.#database = params.database
    this.engine = params.engine
    this.#directory = params.directory
    this.effects = new Effects(this.#effectsFile)
  }

  static async on(server: PostgresServer): Promise<Fleet> {
    const database = await PostgresDatabase.create(server)
    const { engine } = processApp(await database.store())
    registerMixed(engine, () => {})
    const directory = await mkdtemp(join(tmpdir(), 'durable-fleet-'))
    return new Fleet({ database, engine, directory })
  }

  /** Starts worker processes, each as a user of its own. Resolves once all of them claim. */
  async work(users: readonly string[], leaseMs: number): Promise<void> {
    const { name: database, server } = this.#database
    const started = users.map((user) => {
      const order: FleetOrder = {
        ...{ server: { ...server, user }, database, effects: this.#effectsFile },
        ...{ name: user, leaseMs },
      }
      return new ForkedProcess<'ready'>(SCRIPT, [JSON.stringify(order)])
    })
    this.processes.push(...started)
    for (const process of started) await process.heard()
  }

  /** On a connection of its own, so that it is of no importance what became of others. */
  async query<Row extends pg.QueryResultRow>(sql: string, values: unknown[] = []): Promise<Row[]> {
    const client = await connectClient(this.#database.name, this.#database.server)
    try {
      const { rows } = await client.query<Row>(sql, values)
      return rows
    } finally {
      await client.end()
    }
  }

  async count(what: string, values: unknown[] = []): Promise<number> {
    const [row] = await this.query<{ count: number }>(`select (${what})::integer as count`, values)
    return row?.count ?? 0
  }

  ended(): Promise<number> {
    return this.count('select count(*) from durable_runs where ended_at is not null')
  }

  async untilEnded(atLeast: number): Promise<void> {
    await until(async () => (await this.ended()) >= atLeast)
  }

  /** Stops all workers in order; resolves to their exit codes. */
  async stop(): Promise<(number | null)[]> {
    for (const process of this.processes) process.tell('stop')
    for (const process of this.processes) await process.ended()
    return this.processes.map(({ exitCode }) => exitCode)
  }

  async close(): Promise<void> {
    await cleanUp(
      ...this.processes.map((process) => () => process.kill()),
      () => this.engine.stop(),
      () => this.#database.remove(),
      () => rm(this.#directory, { recursive: true })
    )
  }

  get #effectsFile(): string {
    return join(this.#directory, 'effects')
  }
}

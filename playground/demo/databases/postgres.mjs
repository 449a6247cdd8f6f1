import pg from 'pg'

const CONNECT_MS = 5_000
const { PGHOST = '127.0.0.1', PGPORT = '5432', PGUSER = 'postgres' } = process.env

/** A database of the demo's own on the server that PostgreSQL's variables name. */
export class PostgresDatabase {
  #database = `durable_demo_${process.pid}`
  #creating
  #reader

  get name() {
    return `the PostgreSQL database ${this.#database}`
  }

  /** What the application's processes get to find it. */
  get environment() {
    const server = { PGHOST, PGPORT, PGUSER, PGDATABASE: this.#database }
    return { DB_CONNECTION: 'postgres', DB_FILE: 'unused', ...server }
  }

  async create() {
    this.#creating = this.#administer(`create database ${this.#database}`)
    await this.#creating
  }

  /** Reads beside the workers. Once there are tables. */
  async query(sql, values = []) {
    this.#reader ??= this.#connect(this.#database)
    const reader = await this.#reader
    let number = 0
    const { rows } = await reader.query(
      sql.replaceAll('?', () => `$${++number}`),
      values
    )
    return rows
  }

  async close() {
    const reader = await this.#reader?.catch(() => null)
    await reader?.end()
  }

  /** Whoever is still connected loses the connection. */
  async drop() {
    await this.#creating?.catch(() => {})
    if (this.#creating)
      await this.#administer(`drop database if exists ${this.#database} with (force)`)
  }

  async #administer(sql) {
    const client = await this.#connect('postgres')
    await client.query(sql).finally(() => client.end())
  }

  async #connect(database) {
    const client = new pg.Client({
      host: PGHOST,
      port: Number(PGPORT),
      user: PGUSER,
      database,
      connectionTimeoutMillis: CONNECT_MS,
    })
    // A connection that breaks rejects the query that uses it.
    client.on('error', () => {})
    await client.connect()
    return client
  }
}

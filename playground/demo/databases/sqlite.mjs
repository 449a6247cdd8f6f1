import Database from 'better-sqlite3'
import { join } from 'node:path'

/** A file of the demo's own, in its folder. */
export class SqliteFile {
  #file
  #reader

  constructor({ folder }) {
    this.#file = join(folder, 'demo.sqlite3')
  }

  get name() {
    return 'an SQLite file'
  }

  /** What the application's processes get to find it. */
  get environment() {
    return { DB_CONNECTION: 'sqlite', DB_FILE: this.#file }
  }

  async create() {}

  /** Reads beside the workers. Once there are tables. */
  async query(sql, values = []) {
    this.#reader ??= new Database(this.#file, { readonly: true, timeout: 5_000 })
    return this.#reader.prepare(sql).all(...values)
  }

  async close() {
    this.#reader?.close()
  }

  /** It goes with the folder. */
  async drop() {}
}

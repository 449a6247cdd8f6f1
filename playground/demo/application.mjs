import { copyFileSync, cpSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

const PLAYGROUND = join(import.meta.dirname, '..')
/** What a copy of the application does not need, and what holds the copy. */
const LEFT_OUT = ['.adonisjs', 'build', 'demo', 'demo.mjs', 'node_modules', 'tmp']

/** A copy of the application, of one demo alone: its sources change on the way, and the playground's do not. */
export class Application {
  #folder

  constructor({ folder }) {
    this.#folder = join(folder, 'app')
  }

  get folder() {
    return this.#folder
  }

  create() {
    const entries = readdirSync(PLAYGROUND).filter((entry) => !LEFT_OUT.includes(entry))
    for (const entry of entries)
      cpSync(join(PLAYGROUND, entry), join(this.#folder, entry), { recursive: true })
  }

  /** Puts the step that kills nobody in place of the one that does. Returns the name of its file. */
  fixStep() {
    const file = 'app/steps/enrich_line.ts'
    copyFileSync(join(PLAYGROUND, 'demo/fixed/enrich_line.ts'), join(this.#folder, file))
    return file
  }
}

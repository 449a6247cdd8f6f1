import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { KitApp } from '../../tests/docs/kit_app.ts'
import { compile } from './compilation.ts'
import { PageApplication } from './page_application.ts'
import type { Prepared } from './page_of_snippets.ts'
import type { Row } from './report.ts'

/** A snippet that can be run, and the row that says what became of it. */
export interface Checked {
  prepared: Prepared
  row: Row
}

/** Applications that run at the same time. */
const AT_ONCE = 2
/** Lines of what the workers of a failing application have printed, and characters of each. */
const SHOWN = { lines: 12, characters: 400 }

/** Compiles all snippets, each in an application of its own with the packed package, and runs them. */
export async function runSnippets(all: readonly Checked[]): Promise<void> {
  const kit = await KitApp.create()
  try {
    await kit.install()
    for (const { prepared } of all) await writeFiles(join(kit.folder, 'source'), prepared)
    const names = all.map(({ prepared }) => prepared.name)
    const problems = await compile(kit.folder, names)
    const compiled = all.filter(({ prepared, row }) => {
      row.said = problems.get(prepared.name) ?? []
      return row.said.length === 0
    })
    await runEach(compiled, join(kit.folder, 'compiled'))
  } finally {
    await kit.remove()
  }
}

async function writeFiles(folder: string, { name, files }: Prepared): Promise<void> {
  for (const [path, text] of Object.entries(files)) {
    const file = join(folder, name, path)
    await mkdir(dirname(file), { recursive: true })
    await writeFile(file, text)
  }
}

async function runEach(all: readonly Checked[], folder: string): Promise<void> {
  const waiting = [...all]
  const runNext = async (): Promise<void> => {
    for (let next = waiting.shift(); next; next = waiting.shift()) await run(next, folder)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, runNext))
}

async function run({ prepared, row }: Checked, folder: string): Promise<void> {
  row.state = 'compiled'
  const app = new PageApplication(join(folder, prepared.name))
  try {
    await app.open()
    for (const scenario of prepared.scenarios)
      row.said.push(...(await scenario.run(app, prepared.facts)))
    // What asserts nothing has not been checked.
    if (row.said.length > 0) row.state = 'ran'
  } catch (error) {
    const printed = app.output.trimEnd().split('\n').slice(-SHOWN.lines)
    row.said.push(error instanceof Error ? (error.stack ?? error.message) : String(error))
    row.said.push(...printed.map((line) => line.slice(0, SHOWN.characters)))
  } finally {
    await app.close()
  }
}

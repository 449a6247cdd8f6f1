import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { KitApp } from '../../tests/docs/kit_app.ts'
import { compile } from './compilation.ts'
import { PageApplication } from './page_application.ts'
import { PageOfSnippets, type Prepared } from './page_of_snippets.ts'
import { isForeign, snippetsOf } from './page_snippets.ts'
import { type Row, report } from './report.ts'

/** Of what the workers of a failing application have printed. */
const LINES_SHOWN = 12

/** Applications that run at the same time. */
const AT_ONCE = 2

const [given] = process.argv.slice(2)
if (given === undefined) {
  console.error('Usage: node scripts/check_pages.mjs <folder of pages>')
  process.exit(2)
}

const rows: Row[] = []
const prepared: { one: Prepared; row: Row }[] = []
const folder = resolve(given)
for (const file of (await readdir(folder)).sort()) {
  const page = await readFile(join(folder, file), 'utf8')
  const name = /^\d+/.exec(file)?.[0] ?? file
  if (isForeign(page)) {
    rows.push({
      page: name,
      state: 'skipped',
      said: ['a page about another language: not TypeScript'],
    })
    continue
  }
  const snippets = new PageOfSnippets(`page_${name.replaceAll(/\W/g, '_')}`)
  for (const snippet of snippetsOf(page)) {
    const preparation = snippets.prepare(snippet)
    const row: Row = { page: name, snippet, state: 'failed', said: [] }
    rows.push(row)
    if (preparation.kind === 'ready') prepared.push({ one: preparation.prepared, row })
    else Object.assign(row, { state: preparation.kind, said: [preparation.reason] })
  }
}

const kit = await KitApp.create()
try {
  await kit.install()
  await runAll(kit.folder)
} finally {
  await kit.remove()
}
process.exitCode = report(rows) ? 0 : 1

async function runAll(root: string): Promise<void> {
  for (const { one } of prepared) {
    for (const [path, text] of Object.entries(one.files)) {
      const file = join(root, 'source', one.name, path)
      await mkdir(dirname(file), { recursive: true })
      await writeFile(file, text)
    }
  }
  const messages = await compile(
    root,
    prepared.map(({ one }) => one.name)
  )
  const waiting = [...prepared]
  const runNext = async (): Promise<void> => {
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      const { one, row } = next
      const problems = messages.get(one.name) ?? []
      if (problems.length > 0) row.said = problems
      else await runOne(root, { one, row })
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, runNext))
}

async function runOne(root: string, { one, row }: { one: Prepared; row: Row }): Promise<void> {
  if (process.env.DEBUG_PAGES) console.error('begin', one.name)
  row.state = 'compiled'
  const app = new PageApplication(join(root, 'compiled', one.name))
  try {
    await app.open()
    for (const scenario of one.scenarios) row.said.push(...(await scenario.run(app, one.facts)))
    // What asserts nothing has not been checked.
    if (row.said.length > 0) row.state = 'ran'
  } catch (error) {
    row.said.push(
      error instanceof Error ? (error.stack ?? error.message) : String(error),
      app.output
    )
  } finally {
    await app.close()
    if (process.env.DEBUG_PAGES)
      console.error('end', one.name, row.state, row.said.join(' ').slice(0, 3000))
  }
}

import { readdir, readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { PageOfSnippets } from './page_of_snippets.ts'
import { isForeign, snippetsOf } from './page_snippets.ts'
import { type Row, report } from './report.ts'
import { type Checked, runSnippets } from './run_snippets.ts'

const rows: Row[] = []
const ready: Checked[] = []

function addPage(name: string, page: string): void {
  if (isForeign(page)) {
    rows.push({ page: name, state: 'skipped', said: ['a page about another language'] })
    return
  }
  const snippets = new PageOfSnippets(`page_${name.replaceAll(/\W/g, '_')}`)
  for (const snippet of snippetsOf(page)) {
    const preparation = snippets.prepare(snippet)
    const row: Row = { page: name, snippet, state: 'failed', said: [] }
    rows.push(row)
    if (preparation.kind === 'ready') ready.push({ prepared: preparation.prepared, row })
    else Object.assign(row, { state: preparation.kind, said: [preparation.reason] })
  }
}

const [given] = process.argv.slice(2)
if (given === undefined) {
  console.error('Usage: node scripts/check_pages.mjs <folder of pages>')
  process.exitCode = 2
} else {
  const folder = resolve(given)
  const files = await readdir(folder)
  for (const file of files.sort())
    addPage(/^\d+/.exec(file)?.[0] ?? file, await readFile(join(folder, file), 'utf8'))
  if (ready.length > 0) await runSnippets(ready)
  process.exitCode = report(rows) ? 0 : 1
}

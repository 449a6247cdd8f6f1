import type { Snippet } from './page_snippets.ts'

/** What became of a snippet, or of a page without any. */
export interface Row {
  page: string
  snippet?: Snippet
  /** `compiled`: it compiled, and running it failed. */
  state: 'failed' | 'compiled' | 'ran' | 'skipped'
  /** What was asserted, or what went wrong. */
  said: string[]
}

const COLUMNS: Record<Row['state'], string> = {
  failed: 'no       | no ',
  compiled: 'yes      | no ',
  ran: 'yes      | yes',
  skipped: 'skipped  | -  ',
}
const WIDTH = 44

/** Prints the table. False: something has failed, or nothing has run. */
export function report(rows: readonly Row[]): boolean {
  console.log(`${'snippet'.padEnd(WIDTH)} | compiled | ran | asserted`)
  console.log(`${'-'.repeat(WIDTH)} | -------- | --- | --------`)
  for (const { page, snippet, state, said } of rows) {
    const name = snippet ? `${page}:${snippet.line} ${titleOf(snippet)}` : page
    const [first = '', ...rest] = said
    console.log(`${name.slice(0, WIDTH).padEnd(WIDTH)} | ${COLUMNS[state]} | ${first}`)
    for (const line of rest) console.log(`${''.padEnd(WIDTH)} |          |     | ${line}`)
  }
  const count = (states: Row['state'][]) =>
    rows.filter(({ state }) => states.includes(state)).length
  const failed = count(['failed', 'compiled'])
  console.log(`\n${count(['ran'])} ran, ${count(['skipped'])} skipped, ${failed} failed`)
  return failed === 0 && count(['ran']) > 0
}

/** The first line that says something. */
function titleOf({ code }: Snippet): string {
  const lines = code.split('\n').map((line) => line.trim())
  return lines.find((line) => line !== '' && !/^(\/\/|import\b|@)/.test(line)) ?? lines[0] ?? ''
}

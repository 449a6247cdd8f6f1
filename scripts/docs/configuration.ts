import { format, resolveConfig } from 'prettier'
import { OPTIONS, WORKER_OPTIONS, type OptionRow } from '../../src/option_table.ts'

function shownDefault(row: OptionRow): string {
  if (row.shownDefault !== undefined) return row.shownDefault
  return typeof row.default === 'number' ? row.default.toLocaleString('en-US') : String(row.default)
}

function tableOf(rows: Record<string, OptionRow>): string {
  const lines = Object.entries(rows).map(([name, row]) => {
    const value = `${shownDefault(row)}${row.unit === '' ? '' : ` ${row.unit}`}`
    return `| \`${name}\` | ${value} | ${row.meaning} | ${row.expected} |`
  })
  return ['| option | default | meaning | accepts |', '| --- | --- | --- | --- |', ...lines].join(
    '\n'
  )
}

const file = new URL('../../docs/configuration.md', import.meta.url)

/** The page on configuration, made of the table of options. */
export async function configurationPage(): Promise<string> {
  const workerRows = Object.entries(WORKER_OPTIONS).map(([name, row]) => [`worker.${name}`, row])
  const page = `# Configuration

\`config/durable.ts\` exports the result of \`defineConfig\`. Every option can be left out: \`defineConfig({})\` keeps runs in the database of Lucid's default connection. An unknown option, or a value that an option does not accept, stops the application with \`E_INVALID_CONFIG\`, which names the option, what it got and what it expects; an unknown option of \`stores.lucid\` is \`E_UNKNOWN_OPTION\`. A connection that cannot be used is found when the store is first used.

This page is generated from \`src/option_table.ts\` by \`npm run docs\`.

## The store

\`store\` is where runs and their histories live.

| store | meaning |
| --- | --- |
| \`stores.lucid({ connection?, direct? })\` | The application's database; default: Lucid's default connection. \`direct\`: see [PostgreSQL](deployment.md#postgresql). |
| \`stores.memory()\` | The memory of this process: every run is lost when it ends. For tests. |

## The worker

${tableOf(Object.fromEntries(workerRows))}

## Everything else

${tableOf(OPTIONS)}
`
  return format(page, { ...(await resolveConfig(file)), parser: 'markdown' })
}

import { buildIfStale } from './setup/build.mjs'
import { ensureInstalled } from './setup/install.mjs'
import { runNode } from './setup/process.mjs'

await ensureInstalled()
const built = await buildIfStale()
if (built.code === 0) {
  process.exitCode = await runNode([
    '--enable-source-maps',
    `--import=${import.meta.resolve('@poppinss/ts-exec')}`,
    'scripts/pages/main.ts',
    ...process.argv.slice(2),
  ])
} else {
  console.error(`${built.output}\nThe build failed.`)
  process.exitCode = built.code
}

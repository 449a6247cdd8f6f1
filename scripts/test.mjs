import { buildIfStale } from './setup/build.mjs'
import { ensureInstalled } from './setup/install.mjs'
import { runNode } from './setup/process.mjs'

/** Ends a run that never came to its tests, or whose process died in them, with the line that every run ends with. */
function fail(reason) {
  console.error(reason)
  console.log('0 passed, 1 failed, 0 skipped')
  process.exit(1)
}

await ensureInstalled()
const built = await buildIfStale()
if (built.code !== 0) {
  fail(`${built.output}\nThe build failed, so no test was run.`)
}

const code = await runNode([
  '--enable-source-maps',
  `--import=${import.meta.resolve('@poppinss/ts-exec')}`,
  'bin/test.ts',
  ...process.argv.slice(2),
])
if (code > 1) {
  fail(`The process of the tests died (exit code ${code}).`)
}
process.exitCode = code

import { ensureBuilt } from './setup/build.mjs'
import { ensureInstalled } from './setup/install.mjs'
import { runNode } from './setup/process.mjs'

await ensureInstalled()
await ensureBuilt()
process.exitCode = await runNode([
  '--enable-source-maps',
  `--import=${import.meta.resolve('@poppinss/ts-exec')}`,
  'bin/test.ts',
  ...process.argv.slice(2),
])

import { ensureInstalled } from './setup/install.mjs'
import { runNode } from './setup/process.mjs'

await ensureInstalled()
process.exitCode = await runNode([
  '--enable-source-maps',
  `--import=${import.meta.resolve('@poppinss/ts-exec')}`,
  'benchmarks/main.ts',
  ...process.argv.slice(2),
])

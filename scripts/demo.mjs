import { join } from 'node:path'
import { ensureBuilt } from './setup/build.mjs'
import { ensureInstalled } from './setup/install.mjs'
import { root } from './setup/paths.mjs'
import { runNode } from './setup/process.mjs'

await ensureInstalled()
await ensureBuilt()
process.exitCode = await runNode(['demo.mjs', ...process.argv.slice(2)], {
  cwd: join(root, 'playground'),
})

import { join } from 'node:path'
import { buildIfStale } from './setup/build.mjs'
import { ensureInstalled } from './setup/install.mjs'
import { root } from './setup/paths.mjs'
import { runNode } from './setup/process.mjs'

await ensureInstalled()
const built = await buildIfStale()
if (built.code === 0) {
  process.exitCode = await runNode(['demo.mjs', ...process.argv.slice(2)], {
    cwd: join(root, 'playground'),
  })
} else {
  console.error(`${built.output}\nThe build failed.`)
  process.exitCode = built.code
}

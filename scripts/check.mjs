import { ensureInstalled } from './setup/install.mjs'
import { runNode } from './setup/process.mjs'

await ensureInstalled()
process.exitCode = await runNode(['scripts/checks/main.mjs', ...process.argv.slice(2)])

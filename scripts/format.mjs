import { ensureInstalled } from './setup/install.mjs'
import { runNode } from './setup/process.mjs'

await ensureInstalled()
const linted = await runNode(['node_modules/eslint/bin/eslint.js', '--fix', '.'])
const formatted = await runNode(['node_modules/prettier/bin/prettier.cjs', '--write', '.'])
process.exitCode = linted || formatted

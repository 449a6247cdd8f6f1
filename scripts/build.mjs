import { build } from './setup/build.mjs'
import { ensureInstalled } from './setup/install.mjs'

await ensureInstalled()
const { code, output } = await build()
process.stdout.write(output)
process.exitCode = code

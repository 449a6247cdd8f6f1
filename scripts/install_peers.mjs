import { join } from 'node:path'
import { ensureInstalled } from './setup/install.mjs'
import { root } from './setup/paths.mjs'

await ensureInstalled(join(root, 'benchmarks'))

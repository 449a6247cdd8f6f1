import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Absolute path of the directory that holds the stubs. */
export const stubsRoot: string = dirname(fileURLToPath(import.meta.url))

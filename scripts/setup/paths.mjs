import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The repository's root, without a trailing slash. */
export const root = join(fileURLToPath(import.meta.url), '..', '..', '..')

/** The Node.js that the project runs on: a development dependency, whatever the system has. */
export const projectNode = join(root, 'node_modules', 'node', 'bin', 'node')

export const binFolder = join(root, 'node_modules', '.bin')
export const buildFolder = join(root, 'build')
export const cacheFolder = join(root, 'node_modules', '.cache', 'durable')

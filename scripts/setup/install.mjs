import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { cacheFolder, projectNode, root } from './paths.mjs'
import { run } from './process.mjs'

const lockFile = join(root, 'package-lock.json')
const npmRecord = join(root, 'node_modules', '.package-lock.json')
const stampFile = join(cacheFolder, 'installed')

function lockHash() {
  return createHash('sha256').update(readFileSync(lockFile)).digest('hex')
}

function writeStamp(hash) {
  mkdirSync(cacheFolder, { recursive: true })
  writeFileSync(stampFile, hash)
}

/** True when node_modules was made from the lock file as it is now, by this script or by npm itself. */
function isCurrent(hash) {
  if (!existsSync(projectNode) || !existsSync(npmRecord)) {
    return false
  }
  if (existsSync(stampFile) && readFileSync(stampFile, 'utf8') === hash) {
    return true
  }
  return statSync(npmRecord).mtimeMs >= statSync(lockFile).mtimeMs
}

/** Installs the dependencies unless they are there; ends the process when npm fails. */
export async function ensureInstalled() {
  const hash = lockHash()
  if (!isCurrent(hash)) {
    console.log('Installing the dependencies (npm ci)')
    const args = ['ci', '--no-audit', '--no-fund', '--loglevel=error']
    const npm = process.env.npm_execpath
    const code = npm
      ? await run(process.execPath, [npm, ...args])
      : await run('npm', args, { shell: process.platform === 'win32' })
    if (code !== 0) {
      process.exit(code)
    }
  }
  writeStamp(hash)
}

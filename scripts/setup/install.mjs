import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { projectNode, root } from './paths.mjs'
import { run } from './process.mjs'

/** The files that say what is installed in a folder with a lock file of its own. */
function filesOf(folder) {
  return {
    lockFile: join(folder, 'package-lock.json'),
    npmRecord: join(folder, 'node_modules', '.package-lock.json'),
    stampFile: join(folder, 'node_modules', '.cache', 'durable', 'installed'),
  }
}

function hashOf(lockFile) {
  return createHash('sha256').update(readFileSync(lockFile)).digest('hex')
}

function writeStamp({ stampFile }, hash) {
  mkdirSync(dirname(stampFile), { recursive: true })
  writeFileSync(stampFile, hash)
}

/** True when node_modules was made from the lock file as it is now, by this script or by npm itself. */
function isCurrent({ lockFile, npmRecord, stampFile }, hash) {
  if (!existsSync(projectNode) || !existsSync(npmRecord)) {
    return false
  }
  if (existsSync(stampFile) && readFileSync(stampFile, 'utf8') === hash) {
    return true
  }
  return statSync(npmRecord).mtimeMs >= statSync(lockFile).mtimeMs
}

/** Installs the dependencies of a folder unless they are there; ends the process when npm fails. */
export async function ensureInstalled(folder = root) {
  const files = filesOf(folder)
  const hash = hashOf(files.lockFile)
  if (!isCurrent(files, hash)) {
    console.log(`Installing the dependencies${folder === root ? '' : ` in ${folder}`} (npm ci)`)
    const args = ['ci', '--no-audit', '--no-fund', '--loglevel=error']
    const npm = process.env.npm_execpath
    const code = npm
      ? await run(process.execPath, [npm, ...args], { cwd: folder })
      : await run('npm', args, { cwd: folder, shell: process.platform === 'win32' })
    if (code !== 0) {
      process.exit(code)
    }
  }
  writeStamp(files, hash)
}

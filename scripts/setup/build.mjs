import { createHash } from 'node:crypto'
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join, relative } from 'node:path'
import { buildFolder, cacheFolder, root } from './paths.mjs'
import { captureNode } from './process.mjs'

const sources = [
  'configure.ts',
  'index.ts',
  'commands',
  'providers',
  'services',
  'src',
  'stubs',
  'package-lock.json',
  'package.json',
  'scripts/setup/build.mjs',
  'tsconfig.build.json',
  'tsconfig.json',
]
const stampFile = join(cacheFolder, 'built')

function filesOf(path) {
  if (!existsSync(path)) {
    return []
  }
  const entries = readdirSync(path, { withFileTypes: true, recursive: true })
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name))
    .sort()
}

/** A hash of every file that the build reads: a file that was removed counts as well as one that changed. */
function sourcesHash() {
  const hash = createHash('sha256')
  for (const source of sources) {
    const path = join(root, source)
    const files = /\.(ts|mjs|json)$/.test(source) ? [path].filter(existsSync) : filesOf(path)
    for (const file of files) {
      hash.update(relative(root, file)).update('\0').update(readFileSync(file)).update('\0')
    }
  }
  return hash.digest('hex')
}

async function compile(outDir) {
  const tsc = join('node_modules', 'typescript', 'bin', 'tsc')
  const kit = join('node_modules', '@adonisjs', 'core', 'build', 'toolkit', 'main.js')
  const compiled = await captureNode([tsc, '-p', 'tsconfig.build.json', '--outDir', outDir])
  if (compiled.code !== 0) {
    return compiled
  }
  mkdirSync(join(outDir, 'commands'), { recursive: true })
  for (const stub of filesOf(join(root, 'stubs')).filter((file) => file.endsWith('.stub'))) {
    cpSync(stub, join(outDir, relative(root, stub)))
  }
  return captureNode([kit, 'index', join(relative(root, outDir), 'commands')])
}

/**
 * Builds into a folder of its own and puts it in place when it is complete, so that
 * a failed build leaves the last good one. Resolves to the exit code and the output.
 */
export async function build() {
  const hash = sourcesHash()
  const next = join(cacheFolder, `build.${process.pid}`)
  const previous = join(cacheFolder, `previous.${process.pid}`)
  const stamp = join(cacheFolder, `stamp.${process.pid}`)
  mkdirSync(cacheFolder, { recursive: true })
  try {
    const result = await compile(next)
    if (result.code !== 0) {
      return result
    }
    if (existsSync(buildFolder)) {
      renameSync(buildFolder, previous)
    }
    renameSync(next, buildFolder)
    // A new file in place of the old one, which may be a link that another clone has too.
    writeFileSync(stamp, hash)
    renameSync(stamp, stampFile)
    return result
  } finally {
    rmSync(next, { recursive: true, force: true })
    rmSync(previous, { recursive: true, force: true })
  }
}

/** Builds unless the build folder was made from the sources as they are now. */
export async function buildIfStale() {
  const current =
    existsSync(join(buildFolder, 'index.js')) &&
    existsSync(stampFile) &&
    readFileSync(stampFile, 'utf8') === sourcesHash()
  return current ? { code: 0, output: '' } : build()
}

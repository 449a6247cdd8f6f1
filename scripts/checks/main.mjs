import { rmSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { buildIfStale } from '../setup/build.mjs'
import { captureNode } from '../setup/process.mjs'
import { pack } from './tarball.mjs'

/** `--update` rewrites the snapshots in scripts/snapshots instead of comparing with them. */
const update = process.argv.includes('--update') ? ['--update'] : []

const command = (name) => ['--run', name]
const script = (name, ...args) => [`scripts/checks/${name}.mjs`, ...args]

const sourceChecks = {
  'eslint': command('lint'),
  'types': command('typecheck'),
  'prettier': command('format:check'),
  'layers': command('layers'),
  'dead code': command('dead-code'),
}

function packageChecks(tarball) {
  return {
    'playground types': command('typecheck:playground'),
    'are the types wrong': script('types_wrong', tarball.path),
    'publint': script('publint', tarball.path),
    'packed files': script('packed_files', ...tarball.files, ...update),
    'exports': script('exports', ...update),
  }
}

function report(name, startedAt, { code, output }) {
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
  console.log(`${code === 0 ? 'ok    ' : 'FAILED'}  ${name.padEnd(20)} ${seconds.padStart(5)} s`)
  if (code !== 0) {
    console.log(output.trimEnd().replace(/^/gm, '        '))
  }
  return code === 0
}

async function checkOne(name, work) {
  const startedAt = performance.now()
  return report(name, startedAt, await work())
}

async function checkAll(checks) {
  const queue = Object.entries(checks)
  let passed = true
  const lane = async () => {
    for (let next = queue.shift(); next; next = queue.shift()) {
      const [name, args] = next
      passed = (await checkOne(name, () => captureNode(args))) && passed
    }
  }
  await Promise.all(Array.from({ length: availableParallelism() }, lane))
  return passed
}

const startedAt = performance.now()
const built = await checkOne('build', buildIfStale)
const tarball = built ? await pack() : undefined
try {
  const passed = await checkAll({ ...sourceChecks, ...(tarball && packageChecks(tarball)) })
  console.log(`${((performance.now() - startedAt) / 1000).toFixed(1)} s in all`)
  process.exitCode = built && passed ? 0 : 1
} finally {
  if (tarball) {
    rmSync(tarball.folder, { recursive: true })
  }
}

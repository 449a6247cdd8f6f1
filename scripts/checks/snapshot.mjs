import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../setup/paths.mjs'

const folder = join(root, 'scripts', 'snapshots')

/**
 * Compares lines with the committed snapshot of that name and sets the exit code;
 * with `--update` among the arguments it rewrites the snapshot.
 */
export function compareWithSnapshot(name, lines) {
  const path = join(folder, name)
  if (process.argv.includes('--update')) {
    mkdirSync(folder, { recursive: true })
    writeFileSync(path, lines.map((line) => `${line}\n`).join(''))
    return
  }

  const expected = existsSync(path) ? readFileSync(path, 'utf8').split('\n').filter(Boolean) : []
  const missing = expected.filter((line) => !lines.includes(line)).map((line) => `- ${line}`)
  const added = lines.filter((line) => !expected.includes(line)).map((line) => `+ ${line}`)
  if (missing.length > 0 || added.length > 0) {
    console.log([...missing, ...added].join('\n'))
    console.log(
      `\nIf this is meant: npm run check -- --update, and commit scripts/snapshots/${name}`
    )
    process.exitCode = 1
  }
}

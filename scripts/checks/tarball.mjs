import { execFile } from 'node:child_process'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { root } from '../setup/paths.mjs'

/** Packs what would be published, as built, into a temporary folder, which the caller removes. */
export async function pack() {
  const folder = await mkdtemp(join(tmpdir(), 'durable-pack-'))
  const args = ['pack', '--json', '--ignore-scripts', '--pack-destination', folder]
  const npm = process.env.npm_execpath
  const { stdout } = npm
    ? await promisify(execFile)(process.execPath, [npm, ...args], { cwd: root })
    : await promisify(execFile)('npm', args, { cwd: root, shell: process.platform === 'win32' })
  const [packed] = JSON.parse(stdout)
  return {
    folder,
    path: join(folder, packed.filename),
    files: packed.files.map((file) => file.path),
  }
}

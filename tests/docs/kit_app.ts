import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { kitFiles } from './kit_files.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const run = promisify(execFile)

/** What npm would fetch: the packed tarball, put in place of an installed package. */
const NPM = (tarball: string) => `#!/bin/sh
[ "$*" = "install @adonis-agora/durable" ] || { echo "this test has no npm $*" >&2; exit 1; }
mkdir -p node_modules/@adonis-agora/durable
tar -xzf '${tarball}' -C node_modules/@adonis-agora/durable --strip-components=1
`

/**
 * An application as the official kits make them, on SQLite, in a folder of its own. Its dependencies are links to those of this
 * repository; its `npm` knows one command, `install @adonis-agora/durable`, and installs the packed tarball.
 */
export class KitApp {
  private constructor(
    /** Absolute. */
    readonly folder: string,
    /** What commands of the application run with. */
    readonly environment: NodeJS.ProcessEnv
  ) {}

  static async create(): Promise<KitApp> {
    const folder = await mkdtemp(join(tmpdir(), 'durable-docs-'))
    await linkDependencies(folder)
    const tarball = await pack(folder)
    await mkdir(join(folder, '.npm'))
    await writeFile(join(folder, '.npm/npm'), NPM(tarball), { mode: 0o755 })
    const path = [join(folder, '.npm'), join(root, 'node_modules/.bin'), process.env.PATH ?? '']
    const app = new KitApp(folder, { HOME: process.env.HOME, PATH: path.join(delimiter) })
    for (const [file, text] of Object.entries(kitFiles)) await app.write(file, text)
    await mkdir(join(folder, 'tmp'))
    return app
  }

  /** What the first command of the quickstart does before it configures the package. */
  async install(): Promise<void> {
    const { folder: cwd, environment: env } = this
    await run('npm', ['install', '@adonis-agora/durable'], { cwd, env })
  }

  /** Adds subpath imports to its package.json, as configuring the package does. */
  async addImports(imports: Record<string, string>): Promise<void> {
    const manifest = JSON.parse(await readFile(join(this.folder, 'package.json'), 'utf8'))
    Object.assign(manifest.imports, imports)
    await this.write('package.json', JSON.stringify(manifest, null, 2))
  }

  async write(path: string, text: string): Promise<void> {
    const file = join(this.folder, path)
    await mkdir(dirname(file), { recursive: true })
    await writeFile(file, text)
  }

  async remove(): Promise<void> {
    await rm(this.folder, { recursive: true, force: true })
  }
}

async function linkDependencies(folder: string): Promise<void> {
  const from = join(root, 'node_modules')
  const to = join(folder, 'node_modules')
  await mkdir(to)
  const names = await readdir(from)
  const linked = names.filter((name) => !name.startsWith('.') && name !== '@adonis-agora')
  await Promise.all(linked.map((name) => symlink(join(from, name), join(to, name))))
}

/** Resolves to the path of the tarball of the package as it was last built. */
async function pack(folder: string): Promise<string> {
  const args = ['pack', '--json', '--ignore-scripts', '--pack-destination', folder]
  const { stdout } = await run('npm', args, { cwd: root })
  const [packed] = JSON.parse(stdout) as { filename: string }[]
  return join(folder, packed?.filename ?? '')
}

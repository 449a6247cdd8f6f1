import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../../', import.meta.url))

/** A project of a few files under this repository's own configuration of its tools. */
export class ScratchProject {
  private constructor(readonly folder: string) {}

  /** Makes the project with the named configuration files and the given sources, by path. */
  static async create(configurations: string[], sources: Record<string, string>) {
    const folder = await mkdtemp(join(tmpdir(), 'durable-scratch-'))
    await symlink(join(root, 'node_modules'), join(folder, 'node_modules'), 'dir')
    for (const name of [...configurations, 'package.json', 'tsconfig.json']) {
      await cp(join(root, name), join(folder, name))
    }
    for (const [path, source] of Object.entries(sources)) {
      await mkdir(dirname(join(folder, path)), { recursive: true })
      await writeFile(join(folder, path), source)
    }
    return new ScratchProject(folder)
  }

  /** Runs a script of an installed package in the project; resolves to what it printed, however it ended. */
  run(script: string, args: string[]): Promise<string> {
    const { promise, resolve, reject } = Promise.withResolvers<string>()
    const command = [join(root, 'node_modules', script), ...args]
    execFile(process.execPath, command, { cwd: this.folder }, (error, stdout, stderr) => {
      if (error && typeof error.code !== 'number') {
        return reject(error)
      }
      resolve(stdout || stderr)
    })
    return promise
  }

  async remove() {
    await rm(this.folder, { recursive: true })
  }
}

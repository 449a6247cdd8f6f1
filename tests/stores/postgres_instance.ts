import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chmod, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { once } from 'node:events'
import { promisify } from 'node:util'
import type { PostgresServer } from './postgres_server.ts'

const run = promisify(execFile)
const VERSIONS = '/usr/lib/postgresql'

/** Where the server's programs are; null = none are installed. */
export async function findBinaries(): Promise<string | null> {
  const versions = existsSync(VERSIONS) ? await readdir(VERSIONS) : []
  const newest = versions.toSorted((one, other) => Number(other) - Number(one))
  const asked = await run('pg_config', ['--bindir']).then(
    ({ stdout }) => [stdout.trim()],
    () => []
  )
  const folders = [...newest.map((version) => join(VERSIONS, version, 'bin')), ...asked]
  return folders.find((folder) => existsSync(join(folder, 'initdb'))) ?? null
}

/** A server of a test's own, on a port of its own, that it may restart. PostgreSQL refuses to run as root. */
export class PostgresInstance {
  readonly server: PostgresServer
  #binaries: string
  #directory: string

  private constructor(params: { binaries: string; directory: string; server: PostgresServer }) {
    this.#binaries = params.binaries
    this.#directory = params.directory
    this.server = params.server
  }

  /** @param settings lines of its configuration */
  static async start(binaries: string, settings: string[] = []): Promise<PostgresInstance> {
    const directory = await mkdtemp(join(tmpdir(), 'durable-postgres-'))
    if (isRoot()) await run('chown', ['postgres', directory])
    else await chmod(directory, 0o700)
    const server = { host: '127.0.0.1', port: await freePort(), user: 'postgres' }
    const instance = new PostgresInstance({ binaries, directory, server })
    const options = ['--auth=trust', '--username=postgres', '--no-sync', '--encoding=UTF8']
    await instance.#run('initdb', [...options, '--locale=C', join(directory, 'data')])
    const lines = [`port = ${server.port}`, `listen_addresses = '127.0.0.1'`]
    for (const line of [...lines, `unix_socket_directories = '${directory}'`, ...settings])
      await instance.#configure(line)
    await instance.#control('start')
    return instance
  }

  /** Ends every session and comes back, as after an upgrade or a crash. */
  async restart({ mode }: { mode: 'fast' | 'immediate' }): Promise<void> {
    await this.#control('restart', ['-m', mode])
  }

  /** Ends without a goodbye to anybody, and stays away. */
  async goAway(): Promise<void> {
    await this.#control('stop', ['-m', 'immediate'])
  }

  async comeBack(): Promise<void> {
    await this.#control('start')
  }

  /** What the server has logged. */
  log(): Promise<string> {
    return readFile(join(this.#directory, 'log'), 'utf8')
  }

  async remove(): Promise<void> {
    await this.#control('stop', ['-m', 'immediate'])
    await rm(this.#directory, { recursive: true })
  }

  #control(command: string, options: string[] = []): Promise<void> {
    const common = [
      '-D',
      join(this.#directory, 'data'),
      '-l',
      join(this.#directory, 'log'),
      '-w',
      '-s',
    ]
    return this.#run('pg_ctl', [command, ...common, ...options])
  }

  #configure(line: string): Promise<void> {
    const file = join(this.#directory, 'data', 'postgresql.conf')
    return this.#runAsOwner('sh', ['-c', 'echo "$1" >> "$2"', 'sh', line, file])
  }

  #run(program: string, args: string[]): Promise<void> {
    return this.#runAsOwner(join(this.#binaries, program), args)
  }

  async #runAsOwner(program: string, args: string[]): Promise<void> {
    const [command, ...rest] = isRoot()
      ? ['runuser', '-u', 'postgres', '--', program, ...args]
      : [program, ...args]
    await run(command ?? program, rest, { cwd: this.#directory })
  }
}

function isRoot(): boolean {
  return process.getuid?.() === 0
}

async function freePort(): Promise<number> {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (address === null || typeof address === 'string') throw new Error('There is no free port')
  return address.port
}

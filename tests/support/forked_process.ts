import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * Node's own stripping of types and a cache of compiled code start a process in a third of the time that a compiler
 * takes. The scripts fill the cache once their imports are loaded, since a process that is killed does not.
 */
const CACHE = mkdtempSync(join(tmpdir(), 'durable-compiled-'))
process.on('exit', () => rmSync(CACHE, { recursive: true, force: true }))
const EXEC_ARGV = [
  '--experimental-transform-types',
  '--disable-warning=ExperimentalWarning',
  // Loading modules is most of what a process does that is soon killed: no collection on the way, no links looked for.
  '--min-semi-space-size=64',
  '--max-semi-space-size=64',
  '--preserve-symlinks',
  '--preserve-symlinks-main',
]

/**
 * A process of its own that runs a script of the tests and exchanges messages with it. Everything that it writes is
 * kept.
 *
 * @template Told what the script says
 */
export class ForkedProcess<Told> {
  #child: ChildProcess
  #messages: Told[] = []
  #waiting: ((message: Told | null) => void)[] = []
  #output = ''
  #ended: Promise<void>
  #hasEnded = false

  constructor(script: URL, args: readonly string[] = []) {
    this.#child = fork(fileURLToPath(script), args, {
      execArgv: EXEC_ARGV,
      env: { ...process.env, NODE_COMPILE_CACHE: CACHE },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    })
    const keep = (chunk: Buffer) => void (this.#output += chunk.toString())
    this.#child.stdout?.on('data', keep)
    this.#child.stderr?.on('data', keep)
    this.#child.on('message', (message) => this.#receive(message as Told))
    this.#ended = once(this.#child, 'close').then(() => {
      this.#hasEnded = true
      for (const resolve of this.#waiting.splice(0)) resolve(null)
    })
  }

  /** Whatever it has written to its standard output and error. */
  get output(): string {
    return this.#output
  }

  get pid(): number | undefined {
    return this.#child.pid
  }

  /** The signal that ended it; null = none did, or it lives. */
  get killedBy(): NodeJS.Signals | null {
    return this.#child.signalCode
  }

  get exitCode(): number | null {
    return this.#child.exitCode
  }

  /** The next thing it says; null once it has ended. */
  next(): Promise<Told | null> {
    const first = this.#messages.shift()
    if (first !== undefined) return Promise.resolve(first)
    if (this.#hasEnded) return Promise.resolve(null)
    const { promise, resolve } = Promise.withResolvers<Told | null>()
    this.#waiting.push(resolve)
    return promise
  }

  /** The next thing it says; a process that has ended instead is an error with its output. */
  async heard(): Promise<Told> {
    const message = await this.next()
    if (message !== null) return message
    throw new Error(`The process has ended (${this.killedBy ?? this.exitCode}): ${this.#output}`)
  }

  /** One that has ended is told nothing. */
  tell(message: object | string): void {
    this.#child.send(message, () => {})
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }

  /** Resolves once it has ended. */
  ended(): Promise<void> {
    return this.#ended
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#ended
  }

  #receive(message: Told): void {
    const resolve = this.#waiting.shift()
    if (resolve) resolve(message)
    else this.#messages.push(message)
  }
}

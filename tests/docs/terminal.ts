import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { stripVTControlCharacters } from 'node:util'

/** Says after a block that it is over, and with what exit code. */
const END = /^block ended with (\d+)$/m

function squeezed(text: string): string {
  return text.replaceAll(/[ \t]+/g, ' ').trim()
}

/** A shell in which blocks of commands run one after the other, as they were typed. */
export class Terminal {
  #shell: ChildProcessWithoutNullStreams
  #output = ''
  #changed = Promise.withResolvers<void>()

  constructor(params: { folder: string; environment: NodeJS.ProcessEnv }) {
    // A group of its own, so that what runs in the background ends with it.
    this.#shell = spawn('bash', [], {
      cwd: params.folder,
      env: params.environment,
      detached: true,
    })
    for (const stream of [this.#shell.stdout, this.#shell.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        this.#output += stripVTControlCharacters(text)
        this.#tell()
      })
    }
    this.#shell.once('close', () => this.#tell())
  }

  /** Everything printed since the last block began, those that run in the background included. */
  get output(): string {
    return this.#output
  }

  /** Runs a block and resolves when its commands are over. Rejects when the last one fails. */
  async run(block: string): Promise<void> {
    this.#output = ''
    this.#shell.stdin.write(`${block}\necho "block ended with $?"\n`)
    await this.#until(() => END.test(this.#output), `the end of: ${block}`)
    const code = END.exec(this.#output)?.[1]
    if (code !== '0') throw new Error(`Exit code ${code} of: ${block}\n${this.#output}`)
  }

  /** Resolves when every line of `text` has been printed since the last block began; blanks count as one. */
  async prints(text: string): Promise<void> {
    const lines = text.split('\n').map(squeezed).filter(Boolean)
    await this.#until(() => {
      const output = squeezed(this.#output)
      return lines.every((line) => output.includes(line))
    }, text)
  }

  /** Ends everything that was started here, at once. */
  async close(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    if (this.#shell.exitCode !== null || this.#shell.signalCode !== null) return
    this.#shell.once('close', resolve)
    process.kill(-this.#shell.pid!, 'SIGKILL')
    await promise
  }

  async #until(isThere: () => boolean, what: string): Promise<void> {
    while (!isThere()) {
      if (this.#shell.exitCode !== null)
        throw new Error(`The shell has ended before ${what}\n${this.#output}`)
      await this.#changed.promise
    }
  }

  #tell(): void {
    this.#changed.resolve()
    this.#changed = Promise.withResolvers()
  }
}

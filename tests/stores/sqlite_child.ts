import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

/** A process of its own that runs a TypeScript file of the tests and says things line by line. */
export class TestProcess {
  #child: ChildProcess
  #lines: AsyncIterator<string>
  #exit: Promise<unknown>

  constructor(script: URL, args: string[]) {
    const node = ['--import=@poppinss/ts-exec', script.pathname, ...args]
    this.#child = spawn(process.execPath, node, { stdio: ['pipe', 'pipe', 'inherit'] })
    this.#exit = once(this.#child, 'exit')
    if (!this.#child.stdout) throw new Error('The process has no output')
    this.#lines = createInterface(this.#child.stdout)[Symbol.asyncIterator]()
  }

  /** Its next line; undefined once it has ended. */
  async line(): Promise<string | undefined> {
    const { value, done } = await this.#lines.next()
    return done ? undefined : value
  }

  say(line: string) {
    this.#child.stdin?.write(`${line}\n`)
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#exit
  }

  /** Its exit code, once it has ended. */
  async ended(): Promise<number | null> {
    await this.#exit
    return this.#child.exitCode
  }
}

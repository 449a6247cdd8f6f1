import { spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { join } from 'node:path'

const STOP_MS = 10_000

/** The processes of a demo: each one that was started is ended by its own id. */
export class Processes {
  #logs
  #directory
  #environment
  #alive = new Set()
  #isOver = false

  /**
   * @param params.logs folder where logs go
   * @param params.directory where the processes run
   * @param params.environment what every process gets beside this one's
   */
  constructor({ logs, directory, environment }) {
    this.#logs = logs
    this.#directory = directory
    this.#environment = { ...process.env, ...environment }
    process.once('exit', () => this.#killAll())
  }

  /** Runs a script to its end and resolves to what it printed; rejects with its output when it fails. */
  async run(args) {
    const child = this.#spawn(args, ['ignore', 'pipe', 'pipe'])
    let output = ''
    let errors = ''
    child.stdout.on('data', (chunk) => (output += chunk))
    child.stderr.on('data', (chunk) => (errors += chunk))
    const [code, signal] = await child.closed
    if (code === 0) return output
    throw new Error(`node ${args.join(' ')} ended with ${signal ?? code}\n${output}${errors}`)
  }

  /** Starts a process that stays, with its output in `<name>.log`. */
  start(name, args) {
    const logFile = join(this.#logs, `${name}.log`)
    const log = openSync(logFile, 'a')
    const child = this.#spawn(args, ['ignore', log, log])
    closeSync(log)
    return Object.assign(child, { name, logFile })
  }

  /** Ends all as a deployment does, and by force what has not ended then. Resolves to their names and exit codes. */
  async stop() {
    const children = [...this.#alive]
    for (const child of children) child.kill('SIGTERM')
    const late = setTimeout(() => this.#killAll(), STOP_MS)
    const endings = await Promise.all(children.map((child) => child.closed))
    clearTimeout(late)
    return children.map((child, n) => ({ name: child.name, code: endings[n][0] }))
  }

  /** Stops all, and lets no other start. */
  async end() {
    this.#isOver = true
    await this.stop()
  }

  #spawn(args, stdio) {
    if (this.#isOver) throw new Error('The demo is over')
    const child = spawn(process.execPath, args, {
      cwd: this.#directory,
      env: this.#environment,
      stdio,
    })
    this.#alive.add(child)
    child.closed = new Promise((resolve, reject) => {
      child.once('error', reject)
      child.once('close', (code, signal) => {
        this.#alive.delete(child)
        resolve([code, signal])
      })
    })
    return child
  }

  #killAll() {
    for (const child of this.#alive) child.kill('SIGKILL')
  }
}
